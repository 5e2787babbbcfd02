import EventLoops
import Expectations
import Glibc
import HTTPWire
import LoopbackKit
import Testing

extension Scenarios {
    /// Listeners whose connections begin with a PROXY header.
    struct ProxyProtocolTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let line = "PROXY TCP4 192.0.2.7 198.51.100.1 51234 443\r\n"

        /// A gateway that takes headers of 127.0.0.1 alone, and its origin.
        private struct Door {
            let origin: TestOrigin
            let gateway: TestGateway

            init(
                listen: String = "address: 127.0.0.1:0",
                log: String = "{ access: off, level: error }",
                more: String = ""
            ) throws {
                origin = try TestOrigin()
                gateway = try TestGateway(
                    [("shop", [origin.address])],
                    listen: listen + ", proxy_protocol: true",
                    log: log,
                    more: "trusted_proxies: [127.0.0.1]\nadmin: { address: 127.0.0.1:0 }\n" + more
                )
            }

            func stop() {
                gateway.stop()
                origin.stop()
            }

            /// Who the origin was told that the clients of its requests are.
            var clients: [String?] { origin.requests.map { $0.head.value("x-forwarded-for") } }

            /// A metric without labels.
            func metric(_ name: String) throws -> String? {
                let lines = try gateway.askOperators("/metrics").text.split(separator: "\n")
                let line = lines.first { $0.hasPrefix("portcullis_\(name) ") }
                return line?.split(separator: " ").last.map(String.init)
            }
        }

        private static func header(_ client: String, _ port: UInt16 = 51_234) throws -> [UInt8] {
            var bytes: [UInt8] = []
            let source = ProxyHeader.End(try #require(IPAddress(client)), port: port)
            let own = ProxyHeader.End(try #require(IPAddress("198.51.100.1")), port: 443)
            ProxyHeader.append((source, own), to: &bytes)
            return bytes
        }

        @Test func `the origin sees the client that the header names, and so in every request`()
            throws
        {
            let door = try Door()
            defer { door.stop() }
            let (first, second) = (try door.gateway.connect(), try door.gateway.connect())
            try first.send(Self.line + Self.get)
            try expectEqual(first.readResponse().status, 200)
            try first.send(Self.get)
            try expectEqual(first.readResponse().status, 200)
            try second.send(try Self.header("2001:db8::7"))
            try second.send(Self.get)
            try expectEqual(second.readResponse().status, 200)
            expectEqual(door.clients, ["192.0.2.7", "192.0.2.7", "2001:db8::7"])
        }

        @Test func `a header that comes byte by byte is read, and nothing behind it is lost`()
            throws
        {
            let door = try Door()
            defer { door.stop() }
            for header in [Array(Self.line.utf8), try Self.header("192.0.2.7")] {
                let client = try door.gateway.connect()
                for byte in header {
                    try client.send([byte])
                    try client.awaitTaken()
                }
                try client.send(Self.get + Self.get)
                for _ in 0..<2 { try expectEqual(client.readResponse().status, 200) }
            }
            expectEqual(door.clients, Array(repeating: "192.0.2.7", count: 4))
        }

        @Test func `the header comes before TLS`() throws {
            let made = try TestCertificate.made.get()
            let tls = "tls: { certificate: \(made.certificate), key: \(made.key) }"
            let door = try Door(listen: "address: 127.0.0.1:0, \(tls)")
            defer { door.stop() }
            let plain = try LoopbackKit.connected(port: door.gateway.port)
            let header = try Self.header("192.0.2.7")
            expectEqual(send(plain, header, header.count, 0), header.count)
            let trust = try TLSContext(clientTrusting: .file(made.certificate))
            let client = Wire(
                descriptor: plain,
                tls: try TLSSession(connecting: trust, to: "127.0.0.1")
            )
            try client.send(Self.get)
            try expectEqual(client.readResponse().status, 200)
            expectEqual(door.clients, ["192.0.2.7"])
        }

        @Test func `a stranger's connection is closed before a byte of it is read`() throws {
            let door = try Door()
            defer { door.stop() }
            let stranger = try Wire(port: door.gateway.port, from: 2)
            // It may be closed before this is sent.
            try? stranger.send(Self.line + Self.get)
            #expect(Self.isClosed(stranger))
            #expect(door.origin.requests.isEmpty)
            try expectEqual(door.metric("proxy_protocol_strangers_total"), "1")
        }

        /// Whether it ends without a byte, in an orderly way or with a reset.
        private static func isClosed(_ client: Wire) -> Bool {
            do {
                return try client.readToEnd().isEmpty
            } catch {
                return error as? WireFault == .reset
            }
        }

        @Test(arguments: [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY TCP4 1.1.1.1 2.2.2.2 1 02\r\n",
            "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n", "\u{16}\u{3}\u{1}\u{2}\u{0}",
        ])
        func `what does not begin with a header is closed without an answer, and counted`(
            _ bytes: String
        ) throws {
            let door = try Door()
            defer { door.stop() }
            let client = try door.gateway.connect()
            try client.send(bytes)
            #expect(Self.isClosed(client))
            #expect(door.origin.requests.isEmpty)
            try expectEqual(door.metric("proxy_protocol_failures_total"), "1")
        }

        @Test func `a header that is not whole in time ends the connection`() throws {
            let door = try Door(more: "timeouts: { handshake: 50ms }")
            defer { door.stop() }
            let client = try door.gateway.connect()
            try client.send("PROXY TCP4 1.1")
            #expect(Self.isClosed(client))
            try expectEqual(door.metric("proxy_protocol_failures_total"), "1")
        }

        @Test func `a balancer that connects and goes, as a probe does, is no failure`() throws {
            let door = try Door()
            defer { door.stop() }
            let probe = try door.gateway.connect()
            probe.finishSending()
            #expect(Self.isClosed(probe))
            try expectEqual(door.metric("proxy_protocol_failures_total"), "0")
        }

        /// The header and the fields have one authority: trusted_proxies.
        @Test func `a client behind the header can't take another address by a field`() throws {
            let door = try Door()
            defer { door.stop() }
            let spoofed = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
            // The client that the header names is a stranger. LOCAL and UNKNOWN are the proxy,
            // which reads no field and has written none.
            for (header, client) in [
                (Array(Self.line.utf8), "192.0.2.7"),
                (try Self.header("127.0.0.1"), "203.0.113.9, 127.0.0.1"),
                (Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1"),
            ] {
                let wire = try door.gateway.connect()
                try wire.send(header)
                try wire.send(spoofed)
                try expectEqual(wire.readResponse().status, 200)
                expectEqual(door.clients.last, client)
            }
        }

        /// Found in an attack: the field of a client behind HAProxy's Unix socket met the rule.
        @Test func `a field behind a header that names nobody meets no rule for clients`() throws {
            let rule = "{ id: named, match: { path: /**, client: [203.0.113.9/32] }, mode: deny }"
            let door = try Door(more: "rules: [\(rule)]")
            defer { door.stop() }
            let field = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
            for (header, status) in [
                (try Self.header("127.0.0.1"), 404), (Array("PROXY UNKNOWN\r\n".utf8), 200),
            ] {
                let wire = try door.gateway.connect()
                try wire.send(header)
                try wire.send(field)
                try expectEqual(wire.readResponse().status, status)
            }
        }

        @Test func `limits count the client that the header names`() throws {
            let limits =
                "limits: { address_connections: 1, address_requests: 1/s, address_burst: 1 }"
            let door = try Door(more: limits)
            defer { door.stop() }
            let first = try door.gateway.connect()
            try first.send(Self.line + Self.get + Self.get + Self.get)
            var statuses: [Int] = []
            for _ in 0..<3 { statuses.append(try first.readResponse().status) }
            expectEqual(statuses[0], 200)
            #expect(statuses.contains(429))
            // A second connection of the client is one too many; other clients have their own.
            let second = try door.gateway.connect()
            try second.send(Self.line + Self.get)
            #expect(Self.isClosed(second))
            for number in 8..<12 {
                let other = try door.gateway.connect()
                try other.send(try Self.header("192.0.2.\(number)"))
                try other.send(Self.get)
                try expectEqual(other.readResponse().status, 200)
            }
        }

        @Test func `connections that owe their header don't hold up the end`() throws {
            let door = try Door(more: "timeouts: { drain_idle: 100ms }")
            defer { door.origin.stop() }
            let waiting = try door.gateway.connect()
            try waiting.send("PROXY TC")
            let late = try door.gateway.connect()
            try late.send(Self.line + Self.get)
            try expectEqual(late.readResponse().status, 200)
            door.gateway.beginStop()
            #expect(Self.isClosed(waiting))
            expectEqual(door.gateway.exitStatus(), 0)
        }

        @Test func `on a Unix socket, too, the header names the client`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let path = folder + "/gateway.sock"
            let door = try Door(listen: "address: 'unix:\(path)'")
            defer { door.stop() }
            let client = try Wire(path: path)
            try client.send(Self.line + Self.get)
            try expectEqual(client.readResponse().status, 200)
            expectEqual(door.clients, ["192.0.2.7"])
        }

        // MARK: Real peers

        @Test(arguments: ["send-proxy", "send-proxy-v2"])
        func `HAProxy in front names its clients in both versions`(_ word: String) throws {
            let door = try Door()
            defer { door.stop() }
            guard let front = try HAProxyProcess.front(of: door.gateway.port, word) else { return }
            defer { front.stop() }
            for host in UInt8(2)...4 {
                let client = try Wire(port: front.port, from: host)
                for _ in 0..<2 {
                    try client.send(Self.get)
                    try expectEqual(client.readResponse().status, 200)
                    expectEqual(door.clients.last, "127.0.0.\(host)")
                }
            }
        }

        @Test func `HAProxy with all its TLVs is understood`() throws {
            let door = try Door()
            defer { door.stop() }
            let options = "proxy-v2-options ssl,cert-cn,ssl-cipher,crc32c,unique-id"
            guard
                let front = try HAProxyProcess.front(
                    of: door.gateway.port,
                    "send-proxy-v2",
                    options: options
                )
            else { return }
            defer { front.stop() }
            let client = try Wire(port: front.port, from: 2)
            try client.send(Self.get)
            try expectEqual(client.readResponse().status, 200)
            expectEqual(door.clients, ["127.0.0.2"])
        }

        @Test func `curl's own header is understood`() throws {
            guard let curl = ChildProcess.tool("curl") else { return }
            let door = try Door()
            defer { door.stop() }
            let outcome = try ChildProcess.run(
                curl,
                [
                    "--silent", "--show-error", "--haproxy-protocol",
                    "http://127.0.0.1:\(door.gateway.port)/",
                ]
            )
            expectEqual(outcome.printed, "ok", "\(outcome.complained)")
            // It is the proxy and the client.
            expectEqual(door.clients, ["127.0.0.1"])
        }
    }
}
