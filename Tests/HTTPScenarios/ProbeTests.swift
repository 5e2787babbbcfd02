import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Probes on the port that clients use.
    struct ProbeTests {
        private static func request(_ method: String, _ path: String) -> String {
            "\(method) \(path) HTTP/1.1\r\nHost: any.example\r\nContent-Length: 0\r\n\r\n"
        }

        @Test func `probes are answered on the service port, and no origin sees them`() throws {
            let bench = try Bench(more: "probes: { live: /livez, ready: /in/readyz }")
            defer { bench.stop() }
            for (method, path, status, text) in [
                ("GET", "/livez", 200, "ok\n"), ("HEAD", "/livez", 200, ""),
                ("GET", "/livez?verbose", 200, "ok\n"), ("GET", "/in/readyz", 200, "ready\n"),
                ("HEAD", "/in/readyz", 200, ""), ("POST", "/livez", 405, nil),
                ("DELETE", "/in/readyz", 405, nil),
            ] as [(String, String, Int, String?)] {
                let client = try bench.connect()
                try client.send(Self.request(method, path))
                let answer = try client.readResponse(to: method)
                expectEqual(answer.status, status, "\(method) \(path)")
                if let text { expectEqual(answer.text, text) }
            }
            #expect(bench.origin.requests.isEmpty)
            // Other spellings are other paths, and the API's own.
            for path in ["/livez/", "/LIVEZ", "/%6civez", "/readyz", "/in/readyz/x", "/healthz"] {
                let client = try bench.connect()
                try client.send(Self.request("GET", path))
                _ = try client.readResponse()
            }
            expectEqual(bench.origin.requests.count, 6)
        }

        @Test func `without probes in the configuration, their paths are the API's`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            for path in ["/livez", "/readyz"] {
                try expectEqual(bench.gateway.ask(Self.request("GET", path)).status, 200)
            }
            expectEqual(bench.origin.requests.count, 2)
        }

        @Test
        func `a probe of a gateway that drains says 503, and why, without the admin listener`()
            throws
        {
            let bench = try Bench(
                more: """
                    probes: { live: /livez, ready: /readyz }
                    timeouts: { lame_duck: 1h, drain_idle: 100ms }
                    """
            )
            defer { bench.origin.stop() }
            func probe(_ name: String) throws -> WireResponse {
                try bench.gateway.ask(Self.request("GET", name))
            }
            try expectEqual(probe("/readyz").status, 200)
            bench.gateway.beginStop()
            // An answer may be a second old.
            var answer = try probe("/readyz")
            try eventually {
                if answer.status == 200 { answer = try probe("/readyz") }
                return answer.status != 200
            }
            expectEqual(answer.status, 503)
            #expect(answer.text.contains("draining"))
            try expectEqual(probe("/livez").status, 200)
            try expectEqual(bench.gateway.ask(Self.request("GET", "/x")).status, 200)
            bench.gateway.beginStop()
            expectEqual(bench.gateway.exitStatus(), 0)
        }
    }
}
