import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Where the time of a request goes, as the metrics page tells it.
    @Suite struct Durations {
        private static let rules = StockRule.list(.bare)

        @Test
        func `verification, the wait for the disk and the loops' turns are measured`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, _, key) = try scenario.start(rules: Self.rules)
            let client = gateway.client()
            for _ in 0..<3 {
                try expectEqual(client.send(raw: key.get("/v1/bare")).status, 200)
            }
            let samples = try Metrics(gateway.adminClient())
            for name in ["verification_seconds", "commit_wait_seconds"] {
                expectEqual(samples[name + "_count"], 3)
                let sum = samples[name + "_sum"]
                #expect(sum > 0 && sum < 60)
            }
            // The origin's answer to each came as an event of its own, after the request's.
            #expect(samples["event_loop_iteration_events_sum"] >= 6)
            let turns = samples["event_loop_iteration_events_count"]
            #expect(samples["event_loop_polls_total"] >= turns)
            #expect(samples["event_loop_iteration_seconds_count"] >= turns)
            #expect(samples["event_loop_iteration_seconds_sum"] > 0)
        }
    }
}
