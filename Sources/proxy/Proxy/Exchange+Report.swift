import RequestFlow
import Rules
import Services
import Verification

// What reports count of a request.
extension Exchange {
    /// Counts the request with the verdict that it has at its end: content may have changed it.
    func countForReports(nanoseconds: UInt64) {
        guard record.service == nil else { return }
        proxy.report.add(reported, nanoseconds: nanoseconds, of: flow.rule)
    }

    private var reported: ReportedRequest? {
        // The mode first: a judgement is large to copy.
        guard flow.rule.mode != .off, let (ruling, enforcement) = flow.judgement.verdict
        else { return nil }
        let fate: ReportedRequest.Fate
        switch Decision(enforcing: flow.rule, ruling) {
        case .forward: fate = .forwarded
        case .refuse:
            let address = account.address
            fate = .refused(
                Enforcement.bucket(flow.rule, signer: ruling.signer, address: address)
            )
        }
        let isRefused =
            switch (fate, enforcement) {
            case (.refused, .enforced): true
            case (.refused, .observed), (.forwarded, _): false
            }
        return ReportedRequest(
            ruling,
            claimed: record.claimedVersion,
            address: account.address,
            fate: fate,
            isRefused: isRefused
        )
    }
}
