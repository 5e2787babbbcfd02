import Expectations
import Services
import Testing

@testable import Gateway

extension Scenarios {
    /// What `portcullis doctor --through` says of what has arrived.
    struct FrontReportTests {
        /// A gateway may have both, one for nginx and one for HAProxy.
        @Test(arguments: [
            (true, DoctorFinding.Severity.error), (false, DoctorFinding.Severity.warning),
        ])
        func `lost content is a fault where the listener that is asked is to get it`(
            asksWithContent: Bool,
            severity: DoctorFinding.Severity
        ) throws {
            let all = FrontTrial.all(headers: [], contentMax: 100)
            let trial = try #require(all.first { $0.kind == .content })
            let front = try #require(FrontAddress("http://api.example.com"))
            var seen = TrialSighting()
            (seen.form, seen.asksWithContent) = ("auth_request", asksWithContent)
            (seen.method, seen.target, seen.host) = (trial.method, "/trial", front.authority)
            seen.fields = trial.fields.map { "\($0.name): \($0.value)" }
            seen.content = TrialSighting.Content([])
            let found = FrontReport(front: front).findings(
                [(trial, "/trial")],
                [seen],
                answers: [:]
            )
            expectEqual(found.map(\.severity), [severity])
            expectEqual(found.first?.found.hasPrefix("content: none of 40 bytes arrive"), true)
        }
    }
}
