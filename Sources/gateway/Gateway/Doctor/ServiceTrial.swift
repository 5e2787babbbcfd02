import ConfigurationReading
import Foundation
import Parties
import Rules
import Synchronization

/// One question to each service that knows tokens of `proofs`, as its party asks it.
enum ServiceTrial {
    /// The findings so far, and how many are to come.
    private final class Findings: Sendable {
        private let state: Mutex<(found: [DoctorFinding], left: Int)>

        init(_ count: Int) { state = Mutex(([], count)) }

        /// All findings, after the last one.
        func add(_ finding: DoctorFinding) -> [DoctorFinding]? {
            state.withLock { state in
                state.found.append(finding)
                state.left -= 1
                return state.left == 0 ? state.found.sorted { $0.found < $1.found } : nil
            }
        }
    }

    /// Asks all services at once, and reports each answer.
    static func run(
        _ configuration: GatewayConfiguration,
        ended: @escaping @Sendable ([DoctorFinding]) -> Void
    ) {
        let https = HTTPSCalls()
        let trial = PartyTrial(
            https,
            androidApp: configuration.apps.first { $0.android != nil }?.id ?? "",
            now: Int64(Date().timeIntervalSince1970)
        )
        let askings = configuration.proofs.compactMap { $0.settings.asking(trial) }
        guard !askings.isEmpty else { return https.stop { ended([]) } }
        let findings = Findings(askings.count)
        for ask in askings {
            ask { found in
                guard let all = findings.add(DoctorFinding(found)) else { return }
                https.stop { ended(all) }
            }
        }
    }
}

extension DoctorFinding {
    fileprivate init(_ found: PartyTrial.Finding) {
        self =
            switch found {
            case .ok(let text): .ok(.proofs, text)
            case .warning(let text, let next): .warning(.proofs, text, next: next)
            case .error(let text, let next): .error(.proofs, text, next: next)
            }
    }
}
