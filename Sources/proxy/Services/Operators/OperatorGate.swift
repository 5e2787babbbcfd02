import HTTPWire

/// Who may ask for what on the operators' listener.
///
/// The address that is listened on keeps strangers away. It does not keep away a browser of the
/// same host, which sends what a stranger's page tells it to send: to a loopback address, and
/// through `ssh -L` to a Unix socket. So what changes something, and what tells of clients, also
/// asks for which page a browser sends it.
package struct OperatorGate: Sendable {
    /// What is asked for.
    package enum Access: Sendable {
        /// Counts and probes, for programs: whoever reaches the address may read them.
        case open
        /// What a browser shows.
        case page
        /// What changes something, or tells of clients.
        case call
    }

    /// Who knows the token that a call needs; `nil` where the address says who may call.
    private let tokens: (any OperatorTokenSource)?

    /// Whether a call needs the token.
    var asksForToken: Bool { tokens != nil }

    package init(tokens: (any OperatorTokenSource)? = nil) { self.tokens = tokens }

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
        case .page: return head.asksForAddress(octets) ? nil : .hostRefused
        case .call:
            if head.isCrossSite(octets) { return .crossSite }
            // A page that was reached by a stranger's name is of one site with this host. Its GET
            // has no field by which a browser can be told from a program.
            let mayBePage = head.method == .get || head.isFromBrowser(octets)
            if mayBePage, !head.asksForAddress(octets) { return .hostRefused }
            guard let tokens else { return nil }
            guard let shown = head.bearerToken(octets) else { return .tokenMissing }
            let isToken = tokens.operatorToken?.isEqual(octets.extracting(shown)) ?? false
            return isToken ? nil : .tokenWrong
        }
    }
}
