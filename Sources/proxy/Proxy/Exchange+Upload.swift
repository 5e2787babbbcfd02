import Cryptography
import HTTPWire
import Lanes
import Rules
import Telemetry
import Verification

// The request's content.
extension Exchange {
    /// Whether octets of the client are awaited now.
    var isReadingUpload: Bool {
        switch upload {
        case .holding, .collecting, .streaming: true
        case .waiting, .replaying, .done, .abandoned: false
        }
    }

    /// Begins to read: says `100 Continue` first where the client waits for it.
    func beginUpload() {
        guard let client else { return }
        if awaitsContinue, client.inbox.isEmpty {
            awaitsContinue = false
            let interim: [UInt8] = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
            if case .failed = client.write(interim.span) { return client.close() }
        }
        watchUpload()
        pumpUpload()
    }

    /// The client has so much time for its next octets.
    func watchUpload() {
        rateCount = body.contentCount
        client?.setDeadline(milliseconds: settings.timeouts.bodyIdle)
    }

    /// The origin has so much time to take what waits for it.
    func watchOrigin() {
        origin?.setDeadline(milliseconds: settings.timeouts.responseIdle)
    }

    /// Reads content when there is some and somebody takes it: once, then it is the turn of the
    /// lane's other connections.
    func pumpUpload() {
        var hasRead = false
        while isUnderWay, isReadingUpload, let client {
            if case .streaming = upload, let origin, origin.unsentBytes > 0 { return }
            if !client.inbox.isEmpty {
                let octets = client.inbox
                client.inbox = []
                consume(octets.span)
                continue
            }
            if hasRead { return client.resumeReading() }
            hasRead = true
            switch client.read() {
            case .octets(let octets): consume(octets.span)
            case .wouldBlock: return
            case .ended, .failed:
                // RFC 9112 §8: an incomplete request must not look complete to the origin.
                return client.close()
            }
        }
    }

    /// Takes octets of the client's connection: content up to its end, then the next request.
    private func consume(_ octets: Span<UInt8>) {
        var position = 0
        var out = proxy.takeOutput()
        var chunk = ChunkGatherer()
        var plain = 0..<0
        var fault: Malformed.Reason?
        let countBefore = body.contentCount
        reading: while true {
            do throws(Malformed) {
                switch try body.read(octets, from: &position) {
                case .content(let range):
                    guard take(octets.extracting(range)) else {
                        proxy.giveBack(&out)
                        return
                    }
                    if originFraming == .chunked {
                        chunk.add(octets.extracting(range), to: &out)
                    } else {
                        plain = range
                    }
                case .needMore, .finished: break reading
                }
            } catch {
                fault = error.reason
                break reading
            }
        }
        chunk.finish(in: &out)
        proxy.tally.add(.uploadBytes, body.contentCount - countBefore)
        if body.isFinished, position < octets.count, let client {
            client.inbox = octets.extracting(droppingFirst: position).withUnsafeBufferPointer {
                Array($0)
            }
        }
        if let fault { uploadMalformed(fault) } else { pass(octets.extracting(plain), &out) }
        proxy.giveBack(&out)
    }

    /// Hashes, holds or collects a piece of content; `false` when the exchange took another turn.
    private func take(_ piece: Span<UInt8>) -> Bool {
        if let limit = rule.body.limit, endpoint == nil, body.contentCount > UInt64(limit.rawValue),
            !contentIsTooLarge()
        {
            return false
        }
        if expectedDigest != nil { digest.update(piece) }
        switch upload {
        case .holding: return hold(piece)
        case .collecting: return collect(piece)
        case .streaming: return true
        case .waiting, .replaying, .done, .abandoned:
            preconditionFailure("Exchange: content while \(upload)")
        }
    }

    /// Sends what was read to the origin, the last octets only when the digest agrees.
    private func pass(_ plain: Span<UInt8>, _ out: inout [UInt8]) {
        switch upload {
        case .holding:
            if releasesHeld { releaseHeld() } else if body.isFinished { heldIsComplete() }
        case .collecting: if body.isFinished { collectedIsComplete() }
        case .streaming:
            guard !body.isFinished || digestAgrees() else { return }
            guard let origin else { return }
            if body.isFinished, originFraming == .chunked {
                // A client's trailers end here (RFC 9110 §6.5.1 ¶2). Origins can't say that they
                // take any, and some take them for fields of the next request.
                ChunkWriter.end(into: &out)
            }
            hasStreamed = true
            if !out.isEmpty || !plain.isEmpty {
                switch origin.write(out.span, plain) {
                case .sent: break
                case .queued: watchOrigin()
                case .failed: return originWriteFailed(origin)
                }
            }
            if body.isFinished {
                upload = .done
                responseMayEnd()
            }
        case .waiting, .replaying, .done, .abandoned: break
        }
    }

    /// Compares streamed content with the digest that the head states.
    private func digestAgrees() -> Bool {
        guard let expected = expectedDigest else { return true }
        expectedDigest = nil
        guard digest.digest() != expected else { return true }
        proxy.tally.add(.digestMismatches)
        changeVerdict(.refuse(.digestMismatch))
        guard isEnforced else { return true }
        abandonOrigin(.digestMismatch)
        return false
    }

    /// The origin never sees the end of this request; the client is told why, if that is possible.
    func abandonOrigin(_ refusal: Refusal) {
        if problem.isEmpty { problem = refusal.rawValue }
        upload = .abandoned
        if hasResponse { return cutOff() }
        releaseOrigin(reusable: false)
        refuse(refusal)
    }

    /// - Returns: whether the content is forwarded all the same.
    private func contentIsTooLarge() -> Bool {
        if ruling.verdict != .refuse(.contentTooLarge) {
            changeVerdict(.refuse(.contentTooLarge))
        }
        guard isEnforced else {
            if case .holding = upload { releasesHeld = true }
            return true
        }
        abandonOrigin(.contentTooLarge)
        return false
    }

    private func uploadMalformed(_ reason: Malformed.Reason) {
        releaseOrigin(reusable: false)
        upload = .abandoned
        if hasResponse { return cutOff() }
        malformed(reason)
    }

    /// Whether all content is here although none was read yet; it is then taken off the client's
    /// octets. A request that is refused by its head alone need not cost its connection.
    func hasArrived() -> Bool {
        guard let client, isPersistent else { return false }
        let octets = client.inbox
        var position = 0
        do throws(Malformed) {
            while true {
                switch try body.read(octets.span, from: &position) {
                case .content: continue
                case .needMore: return false
                case .finished:
                    client.inbox = Array(octets[position...])
                    return true
                }
            }
        } catch {
            return false
        }
    }

    /// The client was too slow, or is and has an excuse.
    func clientTimedOut() {
        guard client != nil, isReadingUpload else { return }
        if let origin, origin.unsentBytes > 0 { return watchUpload() }
        let wanted = settings.timeouts.bodyMinimumRate * settings.timeouts.bodyIdle / 1000
        let brought = body.contentCount - rateCount
        guard brought == 0 || brought < wanted else { return watchUpload() }
        proxy.tally.add(.clientTimeouts)
        upload = .abandoned
        releaseOrigin(reusable: false)
        if hasResponse { return cutOff() }
        answer(.error(status: 408, reason: "body-timeout"))
    }
}
