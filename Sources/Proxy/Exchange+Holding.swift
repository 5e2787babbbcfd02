import Enforcement
import HTTPWire
import Rules
import Telemetry
import Transport

// Content that is held until it was judged.
extension Exchange {
    /// Begins to hold.
    func hold() {
        guard case .held(_, let memory) = rule.body else {
            preconditionFailure("Exchange: holds content although the rule doesn't")
        }
        proxy.tally.add(.bodiesHeld)
        let room = max(settings.limits.heldMemoryMax - proxy.heldMemory, 0)
        held = HeldBody(memoryMax: min(memory.rawValue, room), folder: settings.spillFolder)
        if case .done = upload { return heldIsComplete() }
        upload = .holding
        beginUpload()
    }

    /// Holds a piece; `false` when the exchange took another turn.
    func hold(_ piece: Span<UInt8>) -> Bool {
        guard let held else { return false }
        let before = (memory: held.memory.count, isSpilled: held.isSpilled)
        do throws(SocketError) {
            try held.append(piece)
        } catch {
            problem = "spill: \(error)"
            upload = .abandoned
            answer(.error(status: 503, reason: "spill-failed"))
            return false
        }
        proxy.heldMemory += held.memory.count - before.memory
        if held.isSpilled, !before.isSpilled { proxy.tally.add(.bodiesSpilled) }
        return true
    }

    func heldIsComplete() {
        guard let held else { return }
        upload = .done
        client?.setDeadline(milliseconds: nil)
        judgeHeld(held)
    }

    /// Forwards what is held without a verdict about it, and streams the rest.
    func releaseHeld() {
        guard let held else { return }
        proof = nil
        originFraming = body.framing
        switch body.framing {
        case .length(let length): HeadWriter.field("Content-Length", length, into: &originHead)
        case .chunked: HeadWriter.field("Transfer-Encoding", "chunked", into: &originHead)
        case .none, .untilClose: break
        }
        client?.setDeadline(milliseconds: nil)
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
            var out = proxy.takeOutput()
            defer { proxy.giveBack(&out) }
            do throws(SocketError) {
                try held.read(from: offset, into: &out, max: Lane.inputBytes)
            } catch {
                problem = "spill: \(error)"
                releaseOrigin(reusable: false)
                upload = .abandoned
                return hasResponse ? cutOff() : answer(.error(status: 503, reason: "spill-failed"))
            }
            upload = .replaying(offset: offset + out.count)
            if originFraming == .chunked {
                var header: [UInt8] = []
                ChunkWriter.beginChunk(out.count, into: &header)
                ChunkWriter.endChunk(into: &out)
                if case .failed = origin.write(header.span) { return originWriteFailed(origin) }
            }
            switch origin.write(out.span) {
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
            return responseMayEnd()
        }
        // It can't be held again, so the request can't be repeated.
        hasStreamed = true
        dropHeld()
        guard body.isFinished else {
            upload = .streaming
            watchUpload()
            return pumpUpload()
        }
        upload = .done
        if originFraming == .chunked {
            var end: [UInt8] = []
            ChunkWriter.end(into: &end)
            if case .failed = origin.write(end.span) { return originWriteFailed(origin) }
        }
        responseMayEnd()
    }
}
