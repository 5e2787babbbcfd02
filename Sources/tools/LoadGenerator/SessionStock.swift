import Cryptography
import Encodings
import EventLoops
import RequestBinding
import Rules
import Verification

/// The sessions of an event loop's devices. Signs with them.
struct SessionStock {
    private struct Open {
        let id: [UInt8]
        let keyID: [UInt8]
        let secret: HMACSHA256.Key
        var next = SequenceNumber.first
        /// A time of the monotonic clock.
        let goodUntil: UInt64
    }

    /// The texts of a request.
    struct Texts {
        var id: [UInt8] = []
        /// Load balancers use it.
        var keyID: [UInt8] = []
        var sequence: [UInt8] = []
        var signature: [UInt8] = []
    }

    private let template: RequestTemplate
    private var sessions: [Open?]
    /// The key ids of devices that have asked for a session, as texts.
    private var keyIDs: [[UInt8]]
    private var lines = RequestLines()
    /// The number of signatures, and the nanoseconds for all of them.
    private(set) var signedCount: UInt64 = 0
    private(set) var signingNanoseconds: UInt64 = 0

    init(_ template: RequestTemplate, deviceCount: Int) {
        self.template = template
        sessions = Array(repeating: nil, count: deviceCount)
        keyIDs = Array(repeating: [], count: deviceCount)
    }

    /// Counts the time of a signature, by the caller's clock.
    mutating func note(nanoseconds spent: UInt64) {
        signedCount += 1
        signingNanoseconds += spent
    }

    /// Signs a content with a device's session; `false` when the device has no valid session.
    mutating func sign(device: Int, content: Int, now: UInt64, into texts: inout Texts) -> Bool {
        guard case .lines(let parts, _) = template.demand.signing,
            var session = sessions[device], now < session.goodUntil,
            let following = session.next.next
        else { return false }
        texts.sequence.removeAll(keepingCapacity: true)
        texts.sequence += session.next.text.utf8
        let before = template.contents[content].linesBefore
        lines.resume(behind: before, parts.inSession, hasDigest: true)
        template.finish(&lines, challenge: texts.sequence.span)
        let bytes = lines.bytes
        let code = session.secret.code(bytes.span).bytes
        texts.signature.removeAll(keepingCapacity: true)
        Base64.append(code.span, to: &texts.signature)
        texts.id = session.id
        texts.keyID = session.keyID
        session.next = following
        sessions[device] = session
        return true
    }

    mutating func ask(_ device: Int, keyID: [UInt8]) { keyIDs[device] = keyID }

    /// Reads the gateway's answer; an unreadable one has no effect.
    mutating func open(_ content: [UInt8], of device: Int, now: UInt64) {
        let members: Set = ["session", "secret", "expires_in"]
        guard let document = JSONDocument(content.span, members: members),
            let id = document.string("session"), let seconds = document.integer("expires_in"),
            let secret = document.string("secret").flatMap({ Base64.decode($0) })
        else { return }
        // The session is renewed before it ends, since the gateway's clock ticks in seconds.
        let good = UInt64(clamping: max(seconds - 1, 0)) * 900_000_000
        sessions[device] = Open(
            id: Array(id.utf8),
            keyID: keyIDs[device],
            secret: HMACSHA256.Key(secret.span),
            goodUntil: now + good
        )
    }

    /// Forgets a session that the gateway does not know.
    mutating func drop(_ device: Int) { sessions[device] = nil }
}

extension RequestTemplate {
    /// Writes a request that is signed with a session, into memory that was used for another.
    func write(
        _ texts: SessionStock.Texts,
        _ sending: Sending,
        content: Int,
        into message: inout Message
    ) {
        begin(sending, into: &message)
        // A rule with other field names takes no key id besides a session.
        if demand.fields.keyID == FieldNames.standard.keyID {
            field(demand.fields.keyID, texts.keyID, into: &message.head)
        }
        field(Self.sessionName, texts.id, into: &message.head)
        field(Self.sequenceName, texts.sequence, into: &message.head)
        field(Self.signatureName, texts.signature, into: &message.head)
        if sending == .tamperedSignature {
            // Any character but the last two, which hold bits that must be zero.
            let place = message.head.count - 10
            let isA = message.head[place] == UInt8(ascii: "A")
            message.head[place] = UInt8(ascii: isA ? "B" : "A")
        }
        end(contents[content], content, sending, into: &message)
    }

    private static let sessionName = Array("App-Attest-Session".utf8)
    private static let sequenceName = Array("App-Attest-Sequence".utf8)
    private static let signatureName = Array("App-Attest-Signature".utf8)
}

// Requests that are signed with a session, and those that open one.
extension LoadLoop {
    /// Writes a request that is signed with the device's session. Without a session, writes one
    /// that opens it.
    func composeBySession(
        _ request: inout LoadRequest,
        into message: inout Message,
        _ now: UInt64
    ) -> Bool {
        guard let device = devices.take(attempts: connectionCount + 1) else { return false }
        let content = Int(request.number % UInt64(template.contents.count))
        if request.sending == .tamperedContent, template.contents[content].plain.isEmpty {
            request.sending = .tamperedSignature
        }
        let start = MonotonicClock.nanoseconds
        guard sessions.sign(device: device, content: content, now: now, into: &sessionTexts) else {
            return composeOpening(device, request: &request, into: &message, now: now)
        }
        sessions.note(nanoseconds: MonotonicClock.nanoseconds - start)
        devices.beginUncounted(device)
        request.device = device
        template.write(sessionTexts, request.sending, content: content, into: &message)
        return true
    }

    private func composeOpening(
        _ device: Int,
        request: inout LoadRequest,
        into message: inout Message,
        now: UInt64
    ) -> Bool {
        let newest = challenges.take(now: now)
        if challenges.count < Self.challengeStock { callForChallenges() }
        guard let newest else { return false }
        let start = MonotonicClock.nanoseconds
        openingSigner.sign(
            device: plan.fleetIndex(device, loop: number),
            counter: devices.begin(device),
            content: 0,
            challenge: newest,
            into: &proof
        )
        openingSigner.note(nanoseconds: MonotonicClock.nanoseconds - start)
        sessions.ask(device, keyID: proof.keyID)
        request.sending = .opening
        request.device = device
        plan.openingTemplate.write(proof, .opening, content: 0, into: &message)
        return true
    }

    /// Keeps an opened session, and forgets one that the gateway no longer knows.
    func noteSession(of device: Int, _ sending: Sending, _ answer: Answer, _ now: UInt64) {
        guard case .session = plan.options.proof else { return }
        if sending == .opening, answer.status == 201 {
            sessions.open(answer.content, of: device, now: now)
        } else if saysEnded(answer) {
            sessions.drop(device)
        }
    }

    /// Whether the session of the request has ended. A replayed request may belong to such a
    /// session.
    func saysEnded(_ answer: Answer) -> Bool {
        guard case .session = plan.options.proof, answer.status == 401, let place = answer.reason
        else { return false }
        let reason = answer.content[place]
        return Self.endings.contains { reason.elementsEqual($0) }
    }

    private static let endings = [Refusal.sessionUnknown, .sessionExpired].map {
        Array($0.rawValue.utf8)
    }
}
