import HTTPWire
import Lanes
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
        guard case .waiting = upload, case .length(let length) = body.framing, let client,
            length <= UInt64(client.inbox.count),
            length <= UInt64(rule.body.limit?.rawValue ?? .max)
        else { return }
        // It is no more than the inbox has.
        let count = Int(length)
        let content = client.inbox.count == count ? client.inbox : Array(client.inbox[..<count])
        if count <= Self.arrivedMax {
            arrived = content
        } else {
            guard case .held(_, let memory) = rule.body else { return }
            held = HeldBody(bounds(memory: memory.rawValue), whole: content)
        }
        if client.inbox.count == count {
            client.inbox = []
        } else {
            client.inbox.removeFirst(count)
        }
        body.finishLength()
        proxy.tally.add(.uploadBytes, length)
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
            held == nil && arrived.isEmpty && !body.isFinished,
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
        client?.setDeadline(milliseconds: nil)
        judgeHeld(held)
    }

    /// Forwards what is held without a verdict about it, and streams the rest.
    func releaseHeld() {
        guard let held else { return }
        // A signature was verified, and nothing was admitted.
        if let proof, proof.isVerified { addFailure(now: MonotonicClock.nanoseconds) }
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
                return hasResponse ? cutOff() : refuse(.spillFailed)
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
