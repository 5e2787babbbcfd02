import ClientStreams
import HTTPWire
import Lanes
import Origins
import Rules
import Telemetry
import Verification

// Content that is held until it was judged.
extension Exchange {
    /// So much content that came whole with the head is copied behind the head for the origin. It
    /// is not counted as held: the head isn't either, and may be larger.
    private static let arrivedMax = 1024

    /// Takes the content off the client's octets where all of it came with the head: it is judged
    /// where it lies, and goes to the origin together with the head. Chunked content never takes
    /// this way.
    func takeArrived() {
        guard case .waiting = upload, let client, client.hasWholeContent else { return }
        let limit = UInt64(rule.body.limit?.rawValue ?? .max)
        let memory: Int? = if case .held(_, let memory) = rule.body { memory.rawValue } else { nil }
        let max = memory == nil ? min(limit, UInt64(Self.arrivedMax)) : limit
        guard let content = client.takeWholeContent(max: max) else { return }
        if let memory, content.count > Self.arrivedMax {
            held = HeldBody(bounds(memory: memory), whole: content)
        } else {
            arrived = content
        }
        proxy.tally.add(.uploadBytes, UInt64(content.count))
        upload = .done
    }

    private func bounds(memory: Int) -> HeldBody.Bounds {
        HeldBody.Bounds(
            ledger: proxy.held,
            limits: settings.limits,
            entry: addressEntry,
            memoryMax: memory,
            folder: settings.spillFolder
        )
    }

    /// Begins to hold.
    func hold() {
        guard case .held(_, let memory) = rule.body else {
            preconditionFailure("Exchange: holds content although the rule doesn't")
        }
        proxy.tally.add(.bodiesHeld)
        precondition(
            held == nil && arrived.isEmpty && client?.isContentComplete != true,
            "Exchange: content that came with its head is judged at once"
        )
        held = HeldBody(bounds(memory: memory.rawValue))
        upload = .holding
        beginUpload()
    }

    /// Holds a piece; `false` when the exchange took another turn.
    func hold(_ piece: Span<UInt8>) -> Bool {
        guard let held else { return false }
        if releasesHeld {
            held.appendUnheld(piece)
            return true
        }
        let wasSpilled = held.isSpilled
        do throws(HeldBody.Fault) {
            try held.append(piece)
        } catch {
            if case .failed(let fault) = error { problem = "spill: \(fault)" }
            changeVerdict(.refuse(error.refusal))
            guard isEnforced else {
                releasesHeld = true
                held.appendUnheld(piece)
                return true
            }
            abandonOrigin(error.refusal)
            return false
        }
        if held.isSpilled, !wasSpilled { proxy.tally.add(.bodiesSpilled) }
        return true
    }

    func heldIsComplete() {
        guard let held else { return }
        upload = .done
        client?.stopDeadline()
        judgeHeld(held)
    }

    /// Forwards what is held without a verdict about it, and streams the rest.
    func releaseHeld() {
        guard let held else { return }
        // A signature was verified, and nothing was admitted.
        if let proof, proof.isVerified { addFailure(now: MonotonicClock.nanoseconds) }
        proof = nil
        originFraming = client?.contentFraming ?? .none
        switch originFraming {
        case .length(let length): HeadWriter.field("Content-Length", length, into: &originHead)
        case .chunked: HeadWriter.field("Transfer-Encoding", "chunked", into: &originHead)
        case .none, .untilClose: break
        }
        client?.stopDeadline()
        writeVerdict()
        replay(held)
    }

    /// Forwards what was held.
    func replay(_ held: HeldBody) {
        if held.count > 0 { upload = .replaying(offset: 0) }
        forward()
    }

    /// Sends the next octets of what was held, as many as the origin takes.
    func replayHeld() {
        while case .replaying(let offset) = upload, let held, let origin, origin.unsentBytes == 0 {
            guard offset < held.count else { return heldIsSent() }
            var out = lane.takeOutput()
            defer { lane.giveBack(&out) }
            do throws(SocketError) {
                try held.read(from: offset, into: &out, max: Lane.inputBytes)
            } catch {
                problem = "spill: \(error)"
                releaseOrigin(reusable: false)
                upload = .abandoned
                return hasResponse ? cutOff() : refuse(.spillFailed)
            }
            upload = .replaying(offset: offset + out.count)
            origin.append(out.span)
            switch origin.flush() {
            case .sent: break
            case .queued: watchOrigin()
            case .failed: return originWriteFailed(origin)
            }
        }
    }

    /// All that was held is with the origin.
    private func heldIsSent() {
        guard releasesHeld, let origin else {
            upload = .done
            // Kept only as long as the request may have to be sent once more.
            if let origin, !mayRepeat(on: origin) {
                hasStreamed = true
                dropHeld()
            }
            return responseMayEnd()
        }
        // It can't be held again, so the request can't be repeated.
        hasStreamed = true
        dropHeld()
        guard client?.isContentComplete != false else {
            upload = .streaming
            watchUpload()
            return pumpUpload()
        }
        upload = .done
        origin.endContent()
        if case .failed = origin.flush() { return originWriteFailed(origin) }
        responseMayEnd()
    }
}
