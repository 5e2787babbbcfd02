import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// What operators see of servers, and how they drain one.
    struct ServerDrainTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let admin = "admin: { address: 127.0.0.1:0, calls: any }"

        private static func ask(_ gateway: TestGateway, _ page: String) throws -> WireResponse {
            let client = try Wire(port: gateway.adminPort)
            try client.send("GET /\(page) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return try client.readFinalResponse()
        }

        private static func change(
            _ gateway: TestGateway,
            _ word: String,
            _ server: String
        ) throws -> WireResponse {
            let client = try Wire(port: gateway.adminPort)
            let head = "POST /origins/\(word) HTTP/1.1\r\nHost: localhost\r\n"
            try client.send("\(head)Content-Length: \(server.utf8.count)\r\n\r\n\(server)")
            return try client.readFinalResponse()
        }

        @Test func `a drained server gets no new request, and ends the one it has`() throws {
            let gate = Gate()
            let origins = try [TestOrigin(script: TestOrigin.slow(until: gate)), TestOrigin()]
            defer { for origin in origins { origin.stop() } }
            let gateway = try TestGateway(
                [("shop", origins.map(\.address))],
                more: "limits: { pooled: 0 }\n" + Self.admin
            )
            defer { gateway.stop() }
            let waiting = try gateway.connect()
            try waiting.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origins[0].wait { $0.first?.heads.count == 1 })
            try expectEqual(Self.change(gateway, "drain", origins[0].address).status, 200)
            for _ in 0..<4 { try expectEqual(gateway.ask(Self.get).status, 200) }
            expectEqual(origins[1].requests.count, 4)
            let lines = try Self.ask(gateway, "origins").text
            #expect(lines.contains("\(origins[0].address)\tdrained\tweight 1\t1 active\t"))
            #expect(lines.contains("\(origins[1].address)\tup\tweight 1\t0 active\t4 served\t"))
            gate.open()
            try expectEqual(waiting.readResponse().status, 200)
            try expectEqual(Self.change(gateway, "undrain", origins[0].address).status, 200)
            for _ in 0..<4 { try expectEqual(gateway.ask(Self.get).status, 200) }
            expectEqual(origins[0].requests.count, 3)
            let metrics = try Self.ask(gateway, "metrics").text
            for origin in origins {
                let name = "portcullis_origin_server_response_seconds_total"
                let sample = metrics.split(separator: "\n").first { line in
                    line.hasPrefix(name) && line.contains("server=\"\(origin.address)\"")
                }
                let seconds = sample?.split(separator: " ").last.flatMap { Double($0) }
                #expect((0.000_001..<120).contains(seconds ?? 0), "\(sample ?? "no sample")")
            }
            let unknown = try Self.change(gateway, "drain", "nobody:80")
            expectEqual(unknown.status, 404)
            #expect(unknown.text.contains("no-such-server"))
        }

        @Test func `the gateway is not ready while no server can serve, and says which`() throws {
            let servers = try (0..<2).map { _ in try TestOrigin() }
            defer { for server in servers { server.stop() } }
            let gateway = try TestGateway(
                [("shop", [servers[0].address]), ("media", [servers[1].address])],
                more: Self.admin
            )
            defer { gateway.stop() }
            try expectEqual(Self.ask(gateway, "readyz").text, "ready\n")
            try expectEqual(Self.change(gateway, "drain", servers[0].address).status, 200)
            let one = try Self.ask(gateway, "readyz")
            expectEqual(one.status, 200)
            expectEqual(one.text, "ready\nno server can serve: shop\n")
            try expectEqual(gateway.ask(Self.get).status, 503)
            try expectEqual(Self.change(gateway, "drain", servers[1].address).status, 200)
            let none = try Self.ask(gateway, "readyz")
            expectEqual(none.status, 503)
            #expect(none.text.contains(#""reasons":["origins-down"]"#))
            let metrics = try Self.ask(gateway, "metrics").text
            let labels =
                "origin=\"shop\",server=\"\(servers[0].address)\",address=\"\(servers[0].address)\""
            #expect(metrics.contains("portcullis_origin_server_up{\(labels)} 0\n"))
        }

        @Test func `an origin whose servers have no address is named, too`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address]), ("media", ["absent.test:80"])],
                more: Self.admin,
                lookUp: { _, _ in [] }
            )
            defer { gateway.stop() }
            let ready = try Self.ask(gateway, "readyz")
            expectEqual(ready.status, 200)
            expectEqual(ready.text, "ready\nno server can serve: media\n")
        }

        @Test func `a server that refused is up again without a request`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let path = folder + "/late"
            let gateway = try TestGateway([("shop", ["unix:" + path])], more: Self.admin)
            defer { gateway.stop() }
            try expectEqual(gateway.ask(Self.get).status, 502)
            try expectEqual(Self.ask(gateway, "readyz").status, 503)
            let origin = try TestOrigin(path: path)
            defer { origin.stop() }
            #expect(try eventually { try Self.ask(gateway, "readyz").status == 200 })
            #expect(origin.requests.isEmpty)
        }
    }
}
