import EventLoops
import HTTPWire
import Telemetry
import Verification

// The request's content on its way from the client.
extension Exchange {
    /// Begins to read. First sends `100 Continue` where the client waits for it.
    func readFirstContent() {
        guard let client else { return }
        if !client.hasContent { client.sendContinue() }
        client.awaitContent()
        readContent()
    }

    /// Reads content once, when there is some and it is wanted. Then the event loop's other
    /// connections have their turns.
    func readContent() {
        var hasRead = false
        while flow.takesContent, let client {
            if hasRead { return client.resumeReading() }
            hasRead = !client.hasContent
            let before = client.contentCount
            let read = client.readContent { take($0) }
            proxy.tally.add(.uploadBytes, client.contentCount - before)
            if let key = flow.verdictState.admittedKey { proxy.judge.keyCheck.keep(key) }
            switch read {
            case .some: perform(flow.contentRead(isLast: false))
            case .complete: perform(flow.contentRead(isLast: true))
            case .none, .stopped, .closed: return
            case .malformed(let reason): return perform(flow.contentMalformed(reason))
            }
        }
    }

    /// Takes a piece; `false` when the request has another turn later.
    private func take(_ piece: Span<UInt8>) -> Bool {
        guard let client else { return false }
        return put(piece, flow.contentReceived(piece.count, isLast: client.isContentComplete))
    }

    private func put(_ piece: Span<UInt8>, _ take: Flow.Take) -> Bool {
        switch take {
        case .collect: call?.collect(piece)
        case .hold: return hold(piece)
        case .append: content.heldBody?.appendUnheld(piece)
        case .skim: content.hash(piece)
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
}
