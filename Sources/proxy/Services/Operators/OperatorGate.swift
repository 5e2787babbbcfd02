import Cryptography
import HTTPWire

/// Decides who may ask for what on the operators' listener.
///
/// The listening address keeps remote attackers away. It does not keep away a browser on the same
/// host, which sends what an attacker's page tells it to send: to a loopback address, and through
/// `ssh -L` to a Unix socket. A page whose name resolves to this address (DNS rebinding) could even
/// read the answers. So except for probes the listener answers only if the request's host is an
/// address, or a name of the listener.
package struct OperatorGate: Sendable {
    /// The kind of access.
    package enum Access: CaseIterable, Sendable {
        /// Probes: all callers that reach the address may ask, by any name.
        case open
        /// The counters for Prometheus.
        case metrics
        /// Pages about the state of the gateway.
        case page
        /// Calls that name clients, and change nothing.
        case lookup
        /// Calls that change something.
        case call
    }

    /// The kinds that the listener serves. Paths of other kinds are unknown there.
    private let served: Set<Access>
    /// The source of the token that lookups and calls need; `nil` where the address decides who may
    /// call.
    private let tokens: (any OperatorTokenSource)?
    /// Names beside `localhost` under which pages and calls are served, in lower case.
    private let hosts: [[UInt8]]

    /// What the dashboard may offer.
    var dashboardCalls: DashboardPage.Calls {
        switch (serves(.call), serves(.lookup), tokens != nil) {
        case (true, _, false): .open
        case (true, _, true): .token
        case (false, true, _): .lookup
        case (false, false, _): .none
        }
    }

    /// - hosts: names beside `localhost` under which pages and calls are served.
    package init(
        serving served: Set<Access> = Set(Access.allCases),
        tokens: (any OperatorTokenSource)? = nil,
        hosts: [String] = []
    ) {
        self.served = served
        self.tokens = tokens
        self.hosts = hosts.map { Array($0.lowercased().utf8) }
    }

    /// Whether the listener has paths of this kind.
    func serves(_ access: Access) -> Bool { served.contains(access) }

    /// Why a request is refused; `nil` when it is not. Checked in this order: site, host, token.
    ///
    /// - bytes: the bytes of the head.
    func fault(
        for access: Access,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> LocalFault? {
        switch access {
        case .open: return nil
        case .metrics, .page: return head.asksForAddress(bytes, or: hosts) ? nil : .hostRefused
        case .lookup, .call:
            if head.isCrossSite(bytes) { return .crossSite }
            guard head.asksForAddress(bytes, or: hosts) else { return .hostRefused }
            guard let tokens else { return nil }
            guard let shown = head.bearerToken(bytes) else { return .tokenMissing }
            let isToken = tokens.operatorToken?.isEqual(bytes.extracting(shown)) ?? false
            return isToken ? nil : .tokenWrong
        }
    }
}

/// A secret of operators, for an address that does not say who calls.
package struct OperatorToken: Sendable {
    /// The allowed number of characters. 32 random hexadecimal digits can't be guessed.
    package static let lengths = 32...256

    /// The digest of the token, so that the time of a comparison tells nothing about it.
    private let digest: SHA256Digest
    /// The value that a caller sends in `Authorization`.
    package let authorization: String

    /// Reads a file: one line of visible ASCII. `nil` for anything else.
    package init?(file: [UInt8]) {
        var text = file[...]
        if text.last == UInt8(ascii: "\n") { text.removeLast() }
        guard Self.lengths.contains(text.count),
            text.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        digest = SHA256.digest(of: Array(text))
        authorization = "Bearer " + String(decoding: text, as: UTF8.self)
    }

    /// Whether these bytes are the token.
    package func isEqual(_ bytes: Span<UInt8>) -> Bool {
        SHA256.digest(bytes).isEqual(constantTime: digest)
    }
}

/// Knows the operators' token, which a reload may change.
package protocol OperatorTokenSource: Sendable {
    /// `nil` where none is set.
    var operatorToken: OperatorToken? { get }
}
