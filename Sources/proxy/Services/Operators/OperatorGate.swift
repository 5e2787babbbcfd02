import Cryptography
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
    /// - bytes: of the head.
    func fault(
        _ access: Access,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> LocalFault? {
        switch access {
        case .open: return nil
        case .page: return head.asksForAddress(bytes, or: hosts) ? nil : .hostRefused
        case .call:
            if head.isCrossSite(bytes) { return .crossSite }
            guard head.asksForAddress(bytes, or: hosts) else { return .hostRefused }
            guard let tokens else { return nil }
            guard let shown = head.bearerToken(bytes) else { return .tokenMissing }
            let isToken = tokens.operatorToken?.isEqual(bytes.extracting(shown)) ?? false
            return isToken ? nil : .tokenWrong
        }
    }
}

/// What operators may do through their listener beside reading its pages. A property that
/// is nil is not served.
package struct OperatorCalls {
    /// Who makes calls about devices.
    package var devices: (any DeviceCalling)?
    /// Who drains servers.
    package var origins: (any OriginDraining)?
    /// Who changes rollouts.
    package var rollouts: (any RolloutTaking)?
    /// Who hands over to another process.
    package var upgrades: (any Handing)?
    /// Who knows the last refusals.
    package var refusals: (any RefusalSource)?
    /// Who knows what was counted for reports.
    package var reports: (any ReportSource)?

    /// Who may call.
    package var gate = OperatorGate()

    /// Nothing is served.
    package init() {}

    var entries: [ServiceEntry] {
        var entries: [ServiceEntry] = []
        if let devices { entries += ServiceEntry.deviceCalls(devices) }
        if let origins { entries += ServiceEntry.draining(origins) }
        if let rollouts { entries += ServiceEntry.rollouts(rollouts) + [.audit(rollouts)] }
        if let upgrades { entries.append(.upgrading(upgrades)) }
        if let refusals { entries += ServiceEntry.why(refusals) + [.refusals(refusals)] }
        let calls: DashboardPage.Calls =
            if entries.isEmpty { .none } else { gate.asksForToken ? .token : .open }
        if let reports { entries += ServiceEntry.reports(reports) }
        return entries + ServiceEntry.dashboard(calls)
    }
}

/// A secret that operators show where the address alone says nothing of who calls.
package struct OperatorToken: Sendable {
    /// How many characters it has. 32 random hexadecimal digits can't be guessed.
    package static let lengths = 32...256

    /// Of the token, so that a comparison tells nothing by its time.
    private let digest: SHA256Digest
    /// What a caller sends in `Authorization`.
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

/// Knows the token of operators, which a reload may change.
package protocol OperatorTokenSource: Sendable {
    /// `nil` where none is set.
    var operatorToken: OperatorToken? { get }
}
