import ClientStreams
import Cryptography
import HTTPWire
import Lanes
import Origins
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
        if !client.hasContent { client.sendContinue() }
        watchUpload()
        pumpUpload()
    }

    /// The client has so much time for its next bytes.
    func watchUpload() { client?.awaitContent() }

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
            if hasRead { return client.resumeReading() }
            hasRead = !client.hasContent
            let before = client.contentCount
            let read = client.readContent { take($0) }
            proxy.tally.add(.uploadBytes, client.contentCount - before)
            switch read {
            case .some: pass(isLast: false)
            case .complete: pass(isLast: true)
            case .none, .stopped, .closed: return
            case .malformed(let reason): return uploadMalformed(reason)
            }
        }
    }

    /// Hashes, holds or collects a piece of content; `false` when the exchange took another turn.
    private func take(_ piece: Span<UInt8>) -> Bool {
        guard let client else { return false }
        if let limit = rule.body.limit, endpoint == nil,
            client.contentCount > UInt64(limit.rawValue), !contentIsTooLarge()
        {
            return false
        }
        if expectedDigest != nil { digest.update(piece) }
        switch upload {
        case .holding: return hold(piece)
        case .collecting: return collect(piece)
        case .streaming:
            // The last piece of content with a length is sent from where it is: not before the
            // digest agrees. Chunks are gathered until all that was read was looked at.
            if client.isContentComplete, !digestAgrees() { return false }
            origin?.append(piece)
            return true
        case .waiting, .replaying, .done, .abandoned:
            preconditionFailure("Exchange: content while \(upload)")
        }
    }

    /// Sends what was read to the origin, the last bytes only when the digest agrees.
    private func pass(isLast: Bool) {
        switch upload {
        case .holding: if releasesHeld { releaseHeld() } else if isLast { heldIsComplete() }
        case .collecting: if isLast { collectedIsComplete() }
        case .streaming:
            guard !isLast || digestAgrees(), let origin else { return }
            if isLast { origin.endContent() }
            hasStreamed = true
            switch origin.flush() {
            case .sent: break
            case .queued: watchOrigin()
            case .failed: return originWriteFailed(origin)
            }
            if isLast {
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

    /// The client was too slow, unless it is the origin that takes nothing.
    func contentTimedOut() {
        guard client != nil, isReadingUpload else { return }
        if let origin, origin.unsentBytes > 0 { return watchUpload() }
        proxy.tally.add(.clientTimeouts)
        upload = .abandoned
        releaseOrigin(reusable: false)
        if hasResponse { return cutOff() }
        answer(.error(status: 408, reason: "body-timeout"))
    }
}
