import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Clients' addresses as part of a route.
    @Suite struct ClientMatches {
        private static let rules = """
            - id: office
              match: { path: /v1/orders, client: [127.0.0.8/30, "2001:db8::/32"] }
              mode: off
            - id: abroad
              match: { path: /v1/**, not_client: [127.0.0.0/8, "2001:db8::/32", 192.0.2.0/24] }
              mode: deny
            - id: orders
              match: { path: /v1/** }
              mode: enforce
              sign: [method, target]
            """

        private func status(
            _ port: UInt16,
            from host: UInt8 = 1,
            forwarded: String? = nil,
            _ path: String = "/v1/orders"
        ) throws -> Int {
            let fields = forwarded.map { [(name: "X-Forwarded-For", value: $0)] } ?? []
            return try HTTPClient(port: port, from: host).send("GET", path, fields).status
        }

        @Test func `the address of the connection says which rule a request meets`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin, _) = try scenario.start(rules: Self.rules)
            for host in 8...11 as ClosedRange<UInt8> {
                try expectEqual(status(gateway.port, from: host), 200)
            }
            for host in [1, 7, 12] as [UInt8] {
                try expectEqual(status(gateway.port, from: host), 401)
            }
            // No client names its own address.
            try expectEqual(status(gateway.port, forwarded: "127.0.0.8"), 401)
            try expectEqual(status(gateway.port, from: 8, "/v1/other"), 401)
            expectEqual(origin.seen.count, 4)
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `behind a trusted proxy it is the address that the proxy names`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, _, _) = try scenario.start(
                rules: Self.rules,
                more: "trusted_proxies: [127.0.0.1]"
            )
            let rows: [(String?, Int)] = [
                ("127.0.0.9", 200), ("::ffff:127.0.0.9", 200), ("2001:db8::1", 200),
                ("2001:db9::1", 404), ("203.0.113.7", 404), ("192.0.2.7", 401),
                ("127.0.0.9, 203.0.113.7", 404), ("203.0.113.7, 127.0.0.9", 200),
                ("unknown", 401), (nil, 401),
            ]
            for (named, expected) in rows {
                try expectEqual(status(gateway.port, forwarded: named), expected, "\(named ?? "-")")
            }
            // A peer that is not trusted is the client itself.
            try expectEqual(status(gateway.port, from: 9, forwarded: "203.0.113.7"), 200)
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `the PROXY protocol names the client, too`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(
                origin: origin.address,
                rules: Self.rules,
                more: "trusted_proxies: [127.0.0.1]",
                listeners: "  - { address: 127.0.0.1:0, proxy_protocol: true }"
            )
            let gateway = try scenario.serve()
            let port = try gateway.secondPort()
            for (named, expected) in [("127.0.0.9", 200), ("203.0.113.7", 404), ("192.0.2.7", 401)]
            {
                let wire = Wire(descriptor: try LoopbackKit.connected(port: port))
                let head = "PROXY TCP4 \(named) 127.0.0.1 4000 80\r\n"
                try wire.send(
                    Array((head + HTTPClient.head("GET", "/v1/orders") + "\r\n").utf8)
                )
                try expectEqual(wire.readResponse().status, expected, "\(named)")
            }
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a proxy that asks for a decision gets that of the client's rule`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(
                origin: origin.address,
                rules: Self.rules,
                more: "trusted_proxies: [127.0.0.1]",
                listeners: "  - { address: 127.0.0.1:0, decides: forward_auth }"
            )
            let gateway = try scenario.serve()
            let port = try gateway.secondPort()
            for (named, expected) in [("127.0.0.9", 200), ("203.0.113.7", 404), ("192.0.2.7", 401)]
            {
                let fields = [
                    ("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/v1/orders"),
                    ("X-Forwarded-Proto", "http"), ("X-Forwarded-Host", "api.example.com"),
                    ("X-Forwarded-For", named),
                ]
                let answer = try HTTPClient(port: port).send("GET", "/", fields)
                expectEqual(answer.status, expected, "\(named)")
            }
            try expectEqual(gateway.stop(), 0)
        }
    }
}
