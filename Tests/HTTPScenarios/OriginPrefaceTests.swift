import Expectations
import HTTPWire
import LoopbackKit
import Proxy
import Testing

extension Scenarios {
    /// Origins that get a PROXY header at the beginning of a connection.
    struct OriginPrefaceTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let option = ", proxy_protocol: v2"

        /// Answers each request with the client that the connection's header names.
        private static let telling: TestOrigin.Script = { connection in
            let wire = connection.wire
            while wire.inbox.count < 16 { try wire.receive() }
            let length = 16 + Int(wire.inbox[14]) << 8 + Int(wire.inbox[15])
            let header = try wire.take(length)
            let named: String
            switch try ProxyHeader.read(header.span) {
            case .complete(length, .client(let address, let port)):
                named = "\(address.text):\(port)"
            case .complete(length, .unnamed): named = "nobody"
            case .complete, .needMore: throw WireFault.malformed("PROXY header")
            }
            while let request = try connection.nextRequest() {
                try connection.answer(200, body: named, to: request)
            }
        }

        private static func gateway(_ origin: String, more: String = "") throws -> TestGateway {
            try TestGateway([("shop", [origin])], originOptions: option, more: more)
        }

        private static func ask(_ client: Wire, _ request: String = get) throws -> String {
            try client.send(request)
            let response = try client.readResponse()
            expectEqual(response.status, 200)
            return response.text
        }

        @Test func `each connection names one client, and is used again for that one alone`()
            throws
        {
            let origin = try TestOrigin(script: Self.telling)
            defer { origin.stop() }
            let gateway = try Self.gateway(origin.address)
            defer { gateway.stop() }
            let clients = try [UInt8](1...4).map { ($0, try Wire(port: gateway.port, from: $0)) }
            for _ in 0..<3 {
                for (host, client) in clients {
                    try expectEqual(Self.ask(client), "127.0.0.\(host):\(client.localPort)")
                }
            }
            // One each, although others were idle: another port is another client.
            expectEqual(origin.connections.count, clients.count)
            let again = try Wire(port: gateway.port, from: 1)
            try expectEqual(Self.ask(again), "127.0.0.1:\(again.localPort)")
            expectEqual(origin.connections.count, clients.count + 1)
        }

        @Test func `a full pool makes room for the connection of another client`() throws {
            let origin = try TestOrigin(script: Self.telling)
            defer { origin.stop() }
            let gateway = try Self.gateway(origin.address, more: "limits: { pooled: 2 }")
            defer { gateway.stop() }
            let clients = try (0..<4).map { _ in try gateway.connect() }
            for client in clients { _ = try Self.ask(client) }
            #expect(origin.wait { $0.count { $0.isOpen } == 2 })
            for client in clients[2...] { _ = try Self.ask(client) }
            expectEqual(origin.connections.count, 4)
        }

        @Test func `the client that a trusted proxy names is named, without a port`() throws {
            let origin = try TestOrigin(script: Self.telling)
            defer { origin.stop() }
            let gateway = try Self.gateway(origin.address, more: "trusted_proxies: [127.0.0.1]")
            defer { gateway.stop() }
            let proxy = try gateway.connect()
            for address in ["192.0.2.1", "2001:db8::1", "192.0.2.1"] {
                let field = "X-Forwarded-For: \(address)\r\n\r\n"
                let request = "GET / HTTP/1.1\r\nHost: a\r\n\(field)"
                try expectEqual(Self.ask(proxy, request), "\(address):0")
            }
            expectEqual(origin.connections.count, 2)
        }

        @Test func `a connection that a request finds broken is made anew with the header`() throws
        {
            let origin = try TestOrigin { connection in
                let header = try connection.wire.take(28)
                guard let request = try connection.nextRequest() else { return }
                let named = try ProxyHeader.read(header.span) != .needMore
                try connection.answer(200, body: "\(connection.number) \(named)", to: request)
                // Takes the next request, and ends without an answer.
                _ = try connection.nextHead()
            }
            defer { origin.stop() }
            let gateway = try Self.gateway(origin.address)
            defer { gateway.stop() }
            let client = try gateway.connect()
            try expectEqual(Self.ask(client), "0 true")
            try expectEqual(Self.ask(client), "1 true")
        }

        @Test func `content of any size follows the header whole`() throws {
            let origin = try TestOrigin { connection in
                _ = try connection.wire.take(28)
                while let request = try connection.nextRequest() {
                    try connection.answer(200, body: "\(request.body.count)", to: request)
                }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway(origin.address)
            defer { gateway.stop() }
            let client = try gateway.connect()
            for count in [0, 1, 300_000] {
                let content = String(repeating: "x", count: count)
                let head = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n"
                try expectEqual(Self.ask(client, head + content), "\(count)")
            }
        }

        @Test func `connections of the gateway's own say LOCAL`() throws {
            let origin = try TestOrigin(script: Self.telling)
            defer { origin.stop() }
            let bench = try CallBench([origin.address], preface: .proxyHeader)
            try expectEqual(bench.call().get().content, Array("nobody".utf8))
        }

        @Test func `HAProxy as the origin takes the header, and sees the client`() throws {
            guard let haproxy = try HAProxyProcess.origin() else { return }
            defer { haproxy.stop() }
            let gateway = try Self.gateway("127.0.0.1:\(haproxy.port)")
            defer { gateway.stop() }
            for host in UInt8(1)...3 {
                let client = try Wire(port: gateway.port, from: host)
                for _ in 0..<2 {
                    try expectEqual(Self.ask(client), "127.0.0.\(host):\(client.localPort)")
                }
            }
        }
    }
}
