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

    /// Chooses the rule; answers what can't be routed.
    private func route(_ octets: Span<UInt8>) -> Bool {
        switch settings.rules.destination(of: proxy.heads.request, octets, view: &proxy.view) {
        case .rule(let found):
            rule = found
            return true
        case .unroutable(let found, let reason):
            rule = found
            malformed(reason)
            return false
        }
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
