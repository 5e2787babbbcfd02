import Cryptography
import Expectations
import Foundation
import Gateway
import Glibc
import LoopbackKit
import Testing

extension Scenarios {
    struct ListenerTests {
        private static let get = "GET /x HTTP/1.1\r\nHost: shop.test\r\n\r\n"

        @Test(arguments: ["tcp", "unix"])
        func `loops share a listener, serve all clients and end together`(_ kind: String) throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let path = folder + "/gateway.sock"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: kind == "tcp" ? "address: 127.0.0.1:0" : "address: 'unix:\(path)'",
                loops: 4,
                more: "timeouts: { drain_idle: 100ms }"
            )
            var clients: [Wire] = []
            for _ in 0..<200 {
                clients.append(kind == "tcp" ? try gateway.connect() : try Wire(path: path))
            }
            for _ in 0..<3 {
                for client in clients { try client.send(Self.get) }
                for client in clients { try expectEqual(client.readResponse().status, 200) }
            }
            gateway.beginStop()
            for client in clients { #expect(try client.endsSilently()) }
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test(arguments: ["clients", "operators"])
        func `a second gateway on the same port is told that the address is in use`(
            _ listener: String
        ) throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let servers = [("shop", [origin.address])]
            // Among many, since a reading of /proc brings some 26 sockets.
            let others = try (0..<1_000).map { _ in try LoopbackKit.listening().descriptor }
            defer { for descriptor in others { close(descriptor) } }
            let first = try TestGateway(servers, loops: 2, more: "admin: { address: 127.0.0.1:0 }")
            defer { first.stop() }
            let taken =
                listener == "clients"
                ? "127.0.0.1:\(first.port)" : try #require(first.server.adminAddresses.first)
            let error = #expect(throws: GatewayError.self) {
                if listener == "clients" {
                    _ = try TestGateway(servers, listen: "address: '\(taken)'", loops: 2)
                } else {
                    _ = try TestGateway(servers, more: "admin: { address: '\(taken)' }")
                }
            }
            let what = try #require(error?.what)
            #expect(what.hasPrefix("can't listen on \(taken): address in use by "))
            #expect(what.hasSuffix("(process \(getpid()))"))
            // All clients are still the first one's, on both of its event loops.
            for _ in 0..<20 { try expectEqual(first.ask(Self.get).status, 200) }
        }

        @Test func `Unix sockets serve on both sides`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin(path: folder + "/origin.sock")
            defer { origin.stop() }
            let listening = folder + "/gateway.sock"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 'unix:\(listening)'"
            )
            defer { gateway.stop() }
            let client = try Wire(path: listening)
            for _ in 0..<3 {
                try client.send(Self.get)
                try expectEqual(client.readResponse().text, "ok")
            }
            let content = [UInt8](repeating: 9, count: 3 << 20)
            let length = "Content-Length: \(content.count)\r\n"
            try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(length)\r\n")
            try client.send(content)
            try expectEqual(client.readResponse().text, "ok")
            expectEqual(origin.connections.count, 1)
            expectEqual(origin.requests.last?.body, content)
            expectEqual(origin.requests.last?.head.all("x-forwarded-for"), ["127.0.0.1"])
        }

        @Test func `an origin that ends its Unix socket behind the response is heard out`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let content = [UInt8](repeating: 9, count: 3 << 20)
            let origin = try TestOrigin(path: folder + "/origin.sock") { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\n\r\n")
                try connection.wire.send(content)
            }
            defer { origin.stop() }
            let gateway = try TestGateway(origin)
            defer { gateway.stop() }
            for _ in 0..<3 { try expectEqual(gateway.ask(Self.get).body, content) }
        }

        @Test func `TLS serves requests, large content and the end`() throws {
            let bench = try Bench(isSecure: true)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get + Self.get)
            for _ in 0..<2 { try expectEqual(client.readResponse().text, "ok") }
            let content = [UInt8](repeating: 9, count: 5 << 20)
            try client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                    + "Content-Length: \(content.count)\r\n\r\n"
            )
            try client.send(content)
            try expectEqual(client.readResponse().text, "ok")
            // An orderly end; anything else would be a fault.
            #expect(try client.readToEnd().isEmpty)
            expectEqual(bench.origin.requests.last?.body, content)
            expectEqual(bench.origin.requests.last?.head.all("x-forwarded-proto"), ["https"])
        }

        @Test func `a response that is cut short has no orderly end under TLS`() throws {
            let bench = try Bench(isSecure: true) { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            #expect(throws: WireFault.reset) { try client.readResponse() }
        }

        @Test func `what is no TLS is turned away, and the next client is served`() throws {
            let bench = try Bench(isSecure: true)
            defer { bench.stop() }
            let plain = try Wire(port: bench.gateway.port)
            try plain.send(Self.get)
            var answer: [UInt8] = []
            do { answer = try plain.readToEnd() } catch WireFault.reset {}
            // An alert at the most, never an HTTP response.
            #expect(answer.count < 16)
            let client = try bench.connect()
            try client.send(Self.get)
            try expectEqual(client.readResponse().status, 200)
            expectEqual(bench.origin.requests.count, 1)
        }

        @Test func `a tunnel works under TLS`() throws {
            let bench = try Bench(isSecure: true) { connection in
                if try connection.agreeToTunnel() { try connection.echo() }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.openTunnel()
            try client.expectEcho()
        }

        @Test(.enabled(if: ChildProcess.tool("curl") != nil))
        func `curl uploads and downloads over TLS`() throws {
            let content = [UInt8]((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 * 7 >> 3) })
            let bench = try Bench(isSecure: true) { connection in
                while let head = try connection.nextHead() {
                    let request = try connection.finish(head)
                    let length = "Content-Length: \(request.body.count)\r\n"
                    try connection.wire.send("HTTP/1.1 200 OK\r\n\(length)\r\n")
                    try connection.wire.send(request.body)
                }
            }
            defer { bench.stop() }
            let file = bench.gateway.folder + "/content"
            try Data(content).write(to: URL(fileURLWithPath: file))
            let outcome = try ChildProcess.run(
                try #require(ChildProcess.tool("curl")),
                [
                    "-sS", "--http1.1", "--cacert", try TestCertificate.made.get().certificate,
                    "-T", file, "https://127.0.0.1:\(bench.gateway.port)/echo",
                ]
            )
            expectEqual(outcome.status, 0)
            expectEqual(outcome.output, content)
        }
    }
}
