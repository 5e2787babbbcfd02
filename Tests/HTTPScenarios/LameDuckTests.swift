import LoopbackKit
import Testing

extension Scenarios {
    /// The time between the signal to stop and the end of the listeners, for load balancers.
    struct LameDuckTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        private static func bench(_ time: String) throws -> Bench {
            try Bench(
                more: """
                    admin: { address: 127.0.0.1:0 }
                    timeouts: { lame_duck: \(time), drain_idle: 100ms }
                    """
            )
        }

        @Test func `a lame duck says that it is not ready, and serves all clients as before`()
            throws
        {
            let bench = try Self.bench("1h")
            defer { bench.origin.stop() }
            let known = try bench.connect()
            try known.send(Self.get)
            #expect(try known.readResponse().status == 200)
            #expect(try bench.gateway.askOperators("/readyz").status == 200)
            bench.gateway.beginStop()
            let readiness = try bench.gateway.askOperators("/readyz")
            #expect(readiness.status == 503)
            #expect(readiness.text.contains("draining"))
            for client in [known, try bench.connect(), try bench.connect()] {
                try client.send(Self.get + Self.get)
                for _ in 0..<2 {
                    let response = try client.readResponse()
                    #expect(response.status == 200)
                    #expect(!response.head.has("connection"))
                }
            }
            // A second signal is in a hurry.
            bench.gateway.beginStop()
            #expect(bench.gateway.exitStatus() == 0)
            #expect(try known.endsSilently())
        }

        @Test func `a lame duck drains when its time is over`() throws {
            let bench = try Self.bench("50ms")
            defer { bench.origin.stop() }
            let client = try bench.connect()
            bench.gateway.beginStop()
            #expect(bench.gateway.exitStatus() == 0)
            #expect(try client.endsSilently())
        }
    }
}
