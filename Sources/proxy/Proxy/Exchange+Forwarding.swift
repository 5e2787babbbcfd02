import AppAttest
import ByteCoding
import ClientStreams
import Cryptography
import HTTPWire
import KeyStore
import Lanes
import Origins
import Rules
import Telemetry
import Verification

// The request's head on its way to a server.
extension Exchange {
    /// The place of the rule's origin among the settings and the pools.
    private var originPlace: Int {
        guard let origin = rule.origin else {
            preconditionFailure("Exchange: a denied request is not forwarded")
        }
        return origin.rawValue
    }

    /// Writes the head for the origin while the client's octets are there. Verdict fields follow
    /// with ``writeVerdict()``. The framing is `nil` while it is not known.
    func writeOriginHead(_ octets: Span<UInt8>, framing: BodyFraming?) {
        guard let client else { return }
        originFraming = framing ?? .none
        var options = HeadWriter.RequestOptions()
        // The proof is the gateway's business. A rule with field names of its own is for an app
        // whose origin may still read them.
        if rule.mode != .off { options.dropping.formUnion(FieldKindSet.proof) }
        let pool = settings.origins[originPlace]
        // RFC 9112 §3.2: what goes out as HTTP/1.1 has a Host, also for HTTP/1.0 clients without
        // one.
        let host =
            pool.host ?? (proxy.heads.request.authority.isEmpty ? Array(pool.name.utf8) : nil)
        if host != nil { options.dropping.insert(FieldKindSet(.host)) }
        let isProxy = client.provenance.peerIsTrusted
        options.keeping = isProxy ? pool.keptFields.fromProxies : pool.keptFields.fromAll
        if rule.mode != .off { options.guarding = rule.guardedFields }
        options.framing = originFraming
        options.closes = isolatesContent
        options.forwardsUpgrade = asksUpgrade
        options.acceptsTrailers = acceptsTrailers
        HeadWriter.beginRequest(proxy.heads.request, octets, options, into: &originHead)
        if let host { HeadWriter.field("Host", host, into: &originHead) }
        client.provenance.write(
            proxy.heads.request,
            octets,
            proxy.address,
            keepsHost: isProxy && pool.keptFields.keepsHost
                && proxy.heads.request.fields.contains(.xForwardedHost),
            into: &originHead
        )
        isHeadOpen = true
    }

    /// Tells the origin the verdict. Every copy that the client sent was dropped.
    func writeVerdict() {
        guard rule.mode != .off, isHeadOpen else { return }
        toldPass = ruling.verdict == .pass
        HeadWriter.field("App-Attest-Verdict", text: ruling.verdict.word, into: &originHead)
        let reason = ruling.verdict.reason
        if !reason.isEmpty {
            HeadWriter.field("App-Attest-Reason", text: reason, into: &originHead)
        }
        guard ruling.verdict == .pass, let keyID = ruling.keyID,
            let environment = ruling.environment?.rawValue
        else { return }
        let text = Base64.encode(keyID.digest.bytes.span)
        HeadWriter.field("App-Attest-Key-Id", text, into: &originHead)
        HeadWriter.field("App-Attest-App-Id", text: ruling.appID, into: &originHead)
        HeadWriter.field("App-Attest-Environment", text: environment, into: &originHead)
    }

    /// Sends the request to the next server.
    func forward() {
        if isHeadOpen {
            HeadWriter.endHead(into: &originHead)
            isHeadOpen = false
            // A request that is sent once more is sent with it.
            originHead += arrived
            arrived = []
        }
        // The second attempt takes no idle connection: the others may be as old as the one that
        // failed.
        let connecting = pools[originPlace].connect(
            for: self,
            flow: client?.flow ?? 0,
            reusesIdle: !hasRetried
        )
        switch connecting {
        case .connected(let stream): originConnected(stream)
        case .dialing(let dial): self.dial = dial
        case .failed(let fault, let server): originUnreachable(fault, server)
        }
    }

    func originUnreachable(_ fault: DialFault, _ server: OriginServer?) {
        lastTried = server
        dial = nil
        switch fault {
        case .refused: fail(.originUnreachable)
        case .timedOut: fail(.originTimeout)
        case .outOfDescriptors: fail(.outOfDescriptors)
        }
    }

    /// The connection takes octets.
    func originConnected(_ connection: OriginStream) {
        dial = nil
        origin = connection
        sentAt = MonotonicClock.nanoseconds
        servedBy = (connection.server, connection.isReused)
        connection.begin(
            method,
            asksUpgrade: asksUpgrade,
            framing: originFraming,
            limits: settings.responseLimits
        )
        switch writeHead(to: connection) {
        case .sent: break
        case .queued: watchOrigin()
        case .failed: return originWriteFailed(connection)
        }
        switch upload {
        case .done:
            awaitResponse()
        case .waiting:
            upload = .streaming
            beginUpload()
        case .replaying:
            replayHeld()
        case .holding, .collecting, .streaming, .abandoned:
            preconditionFailure("Exchange: connected to an origin while \(upload)")
        }
    }

    /// Sends the head, and with it what is in memory of content that was held.
    ///
    /// Where content is to follow, the connection ends with a reset from here until all of it is
    /// out, even if the process dies.
    private func writeHead(to connection: OriginStream) -> Connection.WriteOutcome {
        let head = originHead
        switch upload {
        case .replaying:
            guard let held else { preconditionFailure("Exchange: nothing held is replayed") }
            let isPlain = originFraming != .chunked
            let first = isPlain ? min(held.memory.count, Lane.inputBytes) : 0
            connection.resetsOnClose = first < held.count || releasesHeld
            upload = .replaying(offset: first)
            let content = held.memory
            return connection.write(head.span, content.span.extracting(first: first))
        case .waiting:
            connection.resetsOnClose = client?.hasWholeContent != true
        case .done, .holding, .collecting, .streaming, .abandoned: break
        }
        return connection.write(head.span)
    }

    /// The request is out; the response must begin in time.
    func awaitResponse() {
        if let origin, isSent(to: origin) { origin.resetsOnClose = false }
        guard let origin, !hasResponse else { return }
        origin.setDeadline(
            milliseconds: settings.origins[originPlace].firstByteTimeout
        )
        client?.expectNothing()
    }
}
