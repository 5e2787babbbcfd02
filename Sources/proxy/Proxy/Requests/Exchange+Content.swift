import ClientStreams
import Cryptography
import HTTPWire
import Lanes
import Origins
import Rules
import Services
import Telemetry
import Verification

// The request's content on its way from the client.
extension Exchange {
    /// Begins to hold content; it was made ready when the head was judged.
    func hold() {
        proxy.tally.add(.bodiesHeld)
        readFirstContent()
    }

    /// Begins to read: says `100 Continue` first where the client waits for it.
    func readFirstContent() {
        guard let client else { return }
        if !client.hasContent { client.sendContinue() }
        client.awaitContent()
        readContent()
    }

    /// Reads content when there is some and it is wanted: once, then it is the turn of the lane's
    /// other connections.
    func readContent() {
        var hasRead = false
        while flow.takesContent, let client {
            if hasRead { return client.resumeReading() }
            hasRead = !client.hasContent
            let before = client.contentCount
            let read = client.readContent { take($0) }
            proxy.tally.add(.uploadBytes, client.contentCount - before)
            if let key = flow.judgement.admittedKey { proxy.judge.keyCheck.keep(key) }
            switch read {
            case .some: perform(flow.contentRead(isLast: false))
            case .complete: perform(flow.contentRead(isLast: true))
            case .none, .stopped, .closed: return
            case .malformed(let reason): return perform(flow.contentMalformed(reason))
            }
        }
    }

    /// Takes a piece; `false` when the request has taken another turn.
    private func take(_ piece: Span<UInt8>) -> Bool {
        guard let client else { return false }
        return put(piece, flow.contentReceived(piece.count, isLast: client.isContentComplete))
    }

    private func put(_ piece: Span<UInt8>, _ take: Flow.Take) -> Bool {
        switch take {
        case .collect: content.collect(piece)
        case .hold: return hold(piece)
        case .append: content.heldBody?.appendUnheld(piece)
        case .send: origin?.append(piece)
        case .sendHashed:
            content.hash(piece)
            origin?.append(piece)
        case .judgeEnd:
            content.hash(piece)
            return put(piece, judgedEnd())
        case .stop(let action):
            perform(action)
            return false
        }
        return true
    }

    private func hold(_ piece: Span<UInt8>) -> Bool {
        guard let held = content.heldBody else { return false }
        let wasSpilled = held.isSpilled
        do throws(HeldBody.Fault) {
            try held.append(piece)
        } catch {
            if case .failed(let fault) = error { record.note(problem: "spill: \(fault)") }
            return put(piece, flow.holdFailed(error.refusal))
        }
        if held.isSpilled, !wasSpilled { proxy.tally.add(.bodiesSpilled) }
        return true
    }

    /// What bounds content that is held.
    var heldBounds: HeldBody.Bounds {
        guard case .held(_, let memory) = flow.rule.body else {
            preconditionFailure("Exchange: holds content although the rule doesn't")
        }
        return HeldBody.Bounds(
            ledger: proxy.held,
            limits: settings.limits,
            entry: account.entry,
            memoryMax: memory.rawValue,
            folder: settings.spillFolder,
            files: proxy.files
        )
    }
}

/// Content of a request that is here, or what is remembered of it.
enum KeptContent {
    case nothing
    /// All of it came whole with the head, and goes out behind it.
    case withHead([UInt8])
    /// It is held until it can be judged by what the head claims.
    indirect case unjudged(HeldBody, Proof)
    /// It was held, and goes to a server: judged, or released.
    case held(HeldBody)
    /// It is collected for a service.
    case collected(ServiceEntry, [UInt8])
    /// It streams, and must have the digest that the head states: so far.
    case hashed(ContentDigest)
    /// The answer that a service made of it.
    indirect case answered(LocalResponse)

    /// Content that is held, judged or not.
    var heldBody: HeldBody? {
        switch self {
        case .unjudged(let body, _), .held(let body): body
        case .nothing, .withHead, .collected, .hashed, .answered: nil
        }
    }

    /// The bytes that were here with the head, to be judged with it.
    var arrived: [UInt8] {
        switch self {
        case .withHead(let bytes): bytes
        case .held(let body): body.memory
        case .nothing, .unjudged, .collected, .hashed, .answered: []
        }
    }

    /// Adds a piece to what is collected.
    mutating func collect(_ piece: Span<UInt8>) {
        guard case .collected(let service, var bytes) = self else { return }
        // Taken out, so that the bytes have one owner and grow where they are.
        self = .nothing
        piece.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        self = .collected(service, bytes)
    }

    /// Hashes a piece.
    func hash(_ piece: Span<UInt8>) {
        if case .hashed(let digest) = self { digest.stream.update(piece) }
    }
}

/// The digest of content that streams: so far. A reference, because it is large, and most requests
/// have none.
final class ContentDigest {
    @exclusivity(unchecked) var stream = SHA256.Stream()
}
