import ClientStreams
import HTTPWire
import Lanes
import Origins
import Rules
import Telemetry

extension Exchange {
    /// A head is complete.
    ///
    /// - octets: exactly the head.
    func begin(_ octets: Span<UInt8>, fault: Malformed.Reason?) {
        guard let client else { return }
        startedAt = MonotonicClock.nanoseconds
        clientAddress = client.peerAddress
        proxy.tally.add(.requests)
        if let fault { return malformed(fault) }
        read(proxy.heads.request, octets)
        if settings.logsAccess { remember(octets) }
        if !settings.trustedProxies.isEmpty { findClient(octets) }
        guard takesRequest() else { return refuseForAddress() }
        if proxy.heads.request.hasPassedHere(octets) {
            // RFC 9110 §7.6: a gateway must not send a request to itself for ever.
            return answer(.error(status: 508, reason: "loop-detected"))
        }
        if proxy.heads.request.maxForwards(octets) == 0 {
            return answer(.empty(status: 200))
        }
        if let endpoint = Endpoint(proxy.heads.request, octets, under: settings.endpointsPath) {
            return collect(for: endpoint)
        }
        guard route(octets) else { return }
        guard !nominatesGuarded(octets) else { return malformed(.connectionNomination) }
        judge(octets)
    }

    private func read(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
        method = head.method
        acceptsTrailers = head.acceptsTrailers(octets)
        authenticatesConnection = head.fields.authenticatesConnection(octets)
        // No other protocol: behind `h2c` the client would send requests that nobody judges.
        asksUpgrade = head.asksForWebSocket(octets)
        upload = client?.isContentComplete == false ? .waiting : .done
        let isUsual = method.usuallyHasContent && settings.limits.pooledMax > 0
        isolatesContent = !isUploaded && !isUsual
        if isolatesContent { asksUpgrade = false }
    }

    /// Chooses the rule; answers what can't be matched in one way.
    private func route(_ octets: Span<UInt8>) -> Bool {
        proxy.view.read(proxy.heads.request, octets)
        let method = octets.extracting(proxy.heads.request.methodRange)
        let host = octets.extracting(proxy.heads.request.authority)
        switch settings.rules.route(method: method, host: host, view: &proxy.view) {
        case .rule(let found):
            rule = found
            return true
        case .malformed(let reason, let found):
            rule = found
            malformed(reason)
        case .disputed(let found, _):
            // Nobody can say for which of the rules the origin will take the path.
            rule = found
            malformed(.pathAmbiguous)
        }
        return false
    }

    /// Whether Connection names a field that the rule signs or reads: it would end here, after it
    /// was verified.
    private func nominatesGuarded(_ octets: Span<UInt8>) -> Bool {
        guard rule.mode != .off, proxy.heads.request.fields.connection.nominations > 0 else {
            return false
        }
        for field in proxy.heads.request.fields.fields
        where field.isNominated && rule.guardedFields.contains(octets, field.name) {
            return true
        }
        return false
    }

    /// Who the client is, where trusted proxies say so.
    private func findClient(_ octets: Span<UInt8>) {
        guard let client else { return }
        let settings = settings
        proxy.address.read(
            proxy.heads.request.fields,
            octets,
            source: settings.addressSource,
            peer: client.peerAddress,
            isTrusted: { settings.isTrusted($0) }
        )
        clientAddress = proxy.address.client
    }

    /// What the log will say, copied before the head's octets are gone.
    private func remember(_ octets: Span<UInt8>) {
        func copy(_ range: Range<Int>) -> [UInt8] {
            octets.extracting(range).withUnsafeBufferPointer { Array($0) }
        }
        logMethod = copy(proxy.heads.request.methodRange)
        logHost = copy(proxy.heads.request.authority)
        logPath = copy(proxy.heads.request.path)
    }

    /// Answers a request that is none, and ends the connection: its framing is not to be trusted.
    func malformed(_ reason: Malformed.Reason) {
        proxy.tally.add(.malformedRequests)
        client?.endAfterResponse()
        if case .done = upload {} else { upload = .abandoned }
        answer(.error(status: reason.status, reason: reason.rawValue))
    }
}
