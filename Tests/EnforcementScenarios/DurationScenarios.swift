import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Where the time of a request goes, as the metrics page tells it.
    @Suite struct Durations {
        private static let rules = """
            - id: bare
              match: { path: /v1/bare }
              mode: enforce
              sign: [method, target]
            """

        @Test
        func `verification, the wait for the disk and the lanes' turns are measured`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            for _ in 0..<3 {
                let request = SoftwareKey.Request(method: "GET", target: "/v1/bare")
                let form = SigningForm.lines([.method, .target], headers: [])
                let proof = key.proof(of: request, signing: form)
                #expect(try client.send("GET", "/v1/bare", proof.fields).status == 200)
            }
            let samples = try Metrics(gateway.adminClient())
            for name in ["verification_seconds", "commit_wait_seconds"] {
                #expect(samples[name + "_count"] == 3)
                let sum = samples[name + "_sum"]
                #expect(sum > 0 && sum < 60)
            }
            // The origin's answer to each came as an event of its own, after the request's.
            #expect(samples["lane_turn_events_sum"] >= 6)
            let turns = samples["lane_turn_events_count"]
            #expect(samples["lane_polls_total"] >= turns)
            #expect(samples["lane_turn_seconds_count"] >= turns)
            #expect(samples["lane_turn_seconds_sum"] > 0)
        }
    }
}
