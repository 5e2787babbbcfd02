import HTTPWire

/// Who may ask for what on the operators' listener.
///
/// The address that is listened on keeps strangers away. It does not keep away a browser of the
/// same host, which sends what a stranger's page tells it to send: to a loopback address, and
/// through `ssh -L` to a Unix socket. A page of a name that leads here (DNS rebinding) could even
/// read the answers. So all but probes is answered only where the request asks for an address or
/// for a name that is the listener's.
package struct OperatorGate: Sendable {
    /// What is asked for.
    package enum Access: CaseIterable, Sendable {
        /// Probes: whoever reaches the address may ask, by any name.
        case open
        /// What tells how the gateway stands.
        case page
        /// What changes something, or tells of clients.
        case call
    }

    /// Who knows the token that a call needs; `nil` where the address says who may call.
    private let tokens: (any OperatorTokenSource)?
    /// Names beside `localhost` by which pages and calls may be asked for, in lower case.
    private let hosts: [[UInt8]]

    /// Whether a call needs the token.
    var asksForToken: Bool { tokens != nil }

    /// - hosts: names beside `localhost` by which pages and calls may be asked for.
    package init(tokens: (any OperatorTokenSource)? = nil, hosts: [String] = []) {
        self.tokens = tokens
        self.hosts = hosts.map { Array($0.lowercased().utf8) }
    }

    /// Why a request is refused; `nil` when it is not. Checked in this order: site, host, token.
    ///
    /// - octets: of the head.
    func fault(
        _ access: Access,
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> LocalFault? {
        switch access {
        case .open: return nil
        case .page: return head.asksForAddress(octets, or: hosts) ? nil : .hostRefused
        case .call:
            if head.isCrossSite(octets) { return .crossSite }
            guard head.asksForAddress(octets, or: hosts) else { return .hostRefused }
            guard let tokens else { return nil }
            guard let shown = head.bearerToken(octets) else { return .tokenMissing }
            let isToken = tokens.operatorToken?.isEqual(octets.extracting(shown)) ?? false
            return isToken ? nil : .tokenWrong
        }
    }
}
