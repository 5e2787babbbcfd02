import ConfigurationReading
import HTTPSCalls
import OutboundCalls
import SiteverifyServices
import Synchronization

/// One question to each service of a test for people, about a token that no service has made.
///
/// A service that works, and that accepts the secret, refuses the token.
enum ServiceTrial {
    private static let token = Array("portcullis-doctor".utf8)

    /// The findings so far, and how many are to come.
    private final class Findings: Sendable {
        private let state: Mutex<(found: [Finding], left: Int)>

        init(_ count: Int) { state = Mutex(([], count)) }

        /// All findings, after the last one.
        func add(_ finding: Finding) -> [Finding]? {
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
        ended: @escaping @Sendable ([Finding]) -> Void
    ) {
        let services = configuration.siteverify
        guard !services.isEmpty else { return ended([]) }
        let (https, findings) = (HTTPSCalls(), Findings(services.count))
        var party = SiteverifyCalls(services)
        for service in services {
            let call = SiteverifyCall(
                proof: service.name,
                token: token,
                address: nil,
                timeout: service.timeout
            )
            var request = HTTPSRequest(party.written(call, at: 0))
            request.timeout = service.timeout
            https.send(request) { result in
                let verdict = SiteverifyVerdict(CallReply(result), service)
                guard let all = findings.add(finding(service, verdict)) else { return }
                https.stop { ended(all) }
            }
        }
    }

    private static func finding(
        _ service: SiteverifySettings,
        _ verdict: SiteverifyVerdict
    ) -> Finding {
        let name = "\(service.name): \(service.service.rawValue)"
        switch verdict {
        case .refused(.call):
            return .warning(
                .proofs,
                "\(name) calls a question malformed",
                next: verdict.next ?? "see url of the proof"
            )
        case .refused: return .ok(.proofs, "\(name) answers, and accepts the secret")
        case .good:
            return .error(
                .proofs,
                "\(name) takes a token that it has not made",
                next: "use the secret of your site: this one is for tests, and every token passes"
            )
        case .failed:
            return .error(
                .proofs,
                "\(name) can't be asked: \(verdict.word)",
                next: verdict.next ?? "see deploy/docs/runbook/PortcullisTestServiceDown.md"
            )
        }
    }
}
