import ConfigurationReading
import Foundation
import OutboundCalls
import Parties
import Rules
import Synchronization

/// One question to each service that knows tokens of `proofs`, about a token that no service has
/// made.
///
/// A service that works, and that accepts the secret or the service account, refuses the token.
enum ServiceTrial {
    private static let token = Array("portcullis-doctor".utf8)

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
        let proofs = configuration.proofs.map(\.settings)
        let services = proofs.compactMap { $0 as? SiteverifySettings }
        let integrity = proofs.compactMap { ($0 as? IntegritySettings)?.service }
        let count = services.count + integrity.count
        guard count > 0 else { return ended([]) }
        let (https, findings) = (HTTPSCalls(), Findings(count))
        @Sendable func add(_ finding: DoctorFinding) {
            guard let all = findings.add(finding) else { return }
            https.stop { ended(all) }
        }
        let package = configuration.apps.first { $0.android != nil }?.id ?? ""
        for service in integrity { ask(service, package: package, https: https, add: add) }
        var party = SiteverifyCalls(services)
        for service in services {
            let call = SiteverifyCall(
                proof: service.name,
                token: token,
                address: nil,
                timeout: service.calls.timeout
            )
            var request = HTTPSRequest(party.written(call, at: 0))
            request.timeout = service.calls.timeout
            https.send(request) { result in
                add(finding(service, SiteverifyVerdict(CallReply(result), service)))
            }
        }
    }

    /// Asks Google for an access token, and then about the token.
    private static func ask(
        _ service: IntegrityService,
        package: String,
        https: HTTPSCalls,
        add: @escaping @Sendable (DoctorFinding) -> Void
    ) {
        let now = Int64(Date().timeIntervalSince1970)
        send(IntegrityCall(service, .grant), service, now, https) { reply in
            do throws(PartyFault) {
                let access = try AccessToken(reply, askedAt: now)
                let question = IntegrityCall.Question.token(token, package: package, access)
                send(IntegrityCall(service, question), service, now, https) { reply in
                    add(finding(service, package, IntegrityFinding(ofTrial: reply)))
                }
            } catch {
                add(finding(service, package, .failed(error)))
            }
        }
    }

    private static func send(
        _ call: IntegrityCall,
        _ service: IntegrityService,
        _ now: Int64,
        _ https: HTTPSCalls,
        _ done: @escaping @Sendable (CallReply) -> Void
    ) {
        var party = IntegrityCalls([service])
        var request = HTTPSRequest(party.written(call, at: now))
        request.timeout = service.calls.timeout
        https.send(request) { done(CallReply($0)) }
    }

    private static func finding(
        _ service: IntegrityService,
        _ package: String,
        _ found: IntegrityFinding
    ) -> DoctorFinding {
        let name = "\(service.name): Play Integrity"
        switch found {
        case .refused(.denied):
            return .warning(
                .proofs,
                "\(name) does not read tokens of \(package) for this service account",
                next: found.next ?? "see service_account of the proof"
            )
        case .refused, .good:
            return .ok(.proofs, "\(name) answers, and accepts the service account")
        case .failed:
            return .error(
                .proofs,
                "\(name) can't be asked: \(found.word)",
                next: found.next ?? "see deploy/docs/runbook/PortcullisTestServiceDown.md"
            )
        }
    }

    private static func finding(
        _ service: SiteverifySettings,
        _ verdict: SiteverifyVerdict
    ) -> DoctorFinding {
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
