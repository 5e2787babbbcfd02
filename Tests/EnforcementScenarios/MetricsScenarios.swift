import Foundation
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Where the time of a request goes, as the metrics page tells it.
    @Suite struct Metrics {
        private static let rules = """
            - id: bare
              match: { path: /v1/bare }
              mode: enforce
              sign: [method, target]
            """

        /// Its samples by name; those with labels are left out.
        private func samples(_ gateway: GatewayProcess) throws -> [String: Double] {
            let port = try gateway.child.wait(for: "admin listener") { _, complained in
                guard let start = complained.range(of: "admin on 127.0.0.1:") else {
                    return UInt16?.none
                }
                return UInt16(complained[start.upperBound...].prefix { $0.isNumber })
            }
            let page = try HTTPClient(port: port).send("GET", "/metrics")
            let pairs = page.text.split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ")
                return words.count == 2
                    ? Double(words[1]).map { (String(words[0]), $0) } : nil
            }
            return Dictionary(pairs) { first, _ in first }
        }

        @Test
        func `verification, the wait for the disk and the lanes' turns are measured`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let admin = "admin: { address: 127.0.0.1:0 }"
            try scenario.configure(origin, rules: Self.rules, more: admin)
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            for _ in 0..<3 {
                let request = SoftwareKey.Request(method: "GET", target: "/v1/bare")
                let form = SigningForm.lines([.method, .target], headers: [])
                let proof = key.proof(of: request, signing: form)
                #expect(try client.send("GET", "/v1/bare", proof.fields).status == 200)
            }
            let samples = try samples(gateway)
            for name in ["verification_seconds", "commit_wait_seconds"] {
                #expect(samples["portcullis_\(name)_count"] == 3)
                let sum = try #require(samples["portcullis_\(name)_sum"])
                #expect(sum > 0 && sum < 60)
            }
            // The origin's answer to each came as an event of its own, after the request's.
            #expect(try #require(samples["portcullis_lane_turn_events_sum"]) >= 6)
            let turns = try #require(samples["portcullis_lane_turn_events_count"])
            #expect(try #require(samples["portcullis_lane_polls_total"]) >= turns)
            #expect(try #require(samples["portcullis_lane_turn_seconds_count"]) >= turns)
            #expect(try #require(samples["portcullis_lane_turn_seconds_sum"]) > 0)
        }
    }
}
