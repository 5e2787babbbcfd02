import ConfigurationReading
import Expectations
import Foundation
import LoopbackKit
import Rules
import Services
import Testing

extension Scenarios {
    /// The plan that apps get from the gateway, without an admin listener.
    struct PlanTests {
        private static let path = "/.well-known/app-attest/plan"
        private static let on = """
            plan: on
            rules:
              - { id: photos, match: { host: a.test, path: /photos/** }, mode: off, origin: shop }
              - { id: closed, match: { path: /closed }, mode: deny }
            """

        private static func request(
            _ method: String = "GET",
            _ path: String = path,
            _ fields: String = ""
        ) -> String {
            "\(method) \(path) HTTP/1.1\r\nHost: any.example\r\n\(fields)\r\n"
        }

        /// What the command prints of a gateway's file.
        private static func printed(_ gateway: TestGateway) throws -> [UInt8] {
            let loaded = ConfigurationLoader.load(gateway.folder + "/portcullis.yaml")
            let read = try #require(loaded.configuration)
            return ClientPlan(read.rules, endpoints: read.endpointsPath).json
        }

        @Test func `a plan is served as the command prints it, and caches may keep it`() throws {
            let bench = try Bench(more: Self.on)
            defer { bench.stop() }
            let answer = try bench.gateway.ask(Self.request())
            expectEqual(answer.status, 200)
            #expect(answer.body == (try Self.printed(bench.gateway)))
            expectEqual(answer.head.all("Content-Type"), ["application/json"])
            expectEqual(answer.head.all("Cache-Control"), ["public, max-age=300"])
            expectEqual(answer.head.all("X-Content-Type-Options"), ["nosniff"])
            let tag = try #require(answer.head.value("ETag"))
            #expect(tag.wholeMatch(of: /"[0-9a-f]{32}"/) != nil)
            // A shared cache would hand on what is meant for one client.
            for name in ["Set-Cookie", "App-Attest-Challenge", "App-Attest-Next", "Vary"] {
                #expect(!answer.head.has(name))
            }
            let head = try bench.gateway.ask(Self.request("HEAD"), method: "HEAD")
            #expect((head.status, head.text) == (200, ""))
            expectEqual(head.head.value("Content-Length"), "\(answer.body.count)")
            expectEqual(head.head.value("ETag"), tag)
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `a client that has the plan gets a 304 without content or length`() throws {
            let bench = try Bench(more: Self.on)
            defer { bench.stop() }
            let tag = try #require(try bench.gateway.ask(Self.request()).head.value("ETag"))
            let client = try bench.connect()
            for (fields, status) in [
                ("If-None-Match: \(tag)\r\n", 304), ("If-None-Match: W/\(tag)\r\n", 304),
                ("If-None-Match: \"x\", \(tag)\r\n", 304), ("if-none-match: *\r\n", 304),
                ("If-None-Match: \"x\"\r\nIf-None-Match: \(tag)\r\n", 304),
                ("If-None-Match: \"x\"\r\n", 200), ("If-None-Match: \(tag.dropLast())\r\n", 200),
                ("If-None-Match: \(tag.dropFirst().dropLast())\r\n", 200),
                ("If-None-Match: \r\n", 200), ("If-Match: \(tag)\r\n", 200),
                ("If-None-Match: \"\(String(repeating: "\",\"", count: 2_000))\"\r\n", 200),
            ] {
                for method in ["GET", "HEAD"] {
                    // On one connection: a 304 with content would break the next answer.
                    try client.send(Self.request(method, Self.path, fields))
                    let answer = try client.readResponse(to: method)
                    expectEqual(answer.status, status, "\(method) \(fields)")
                    expectEqual(answer.head.value("ETag"), tag)
                    expectEqual(answer.head.value("Cache-Control"), "public, max-age=300")
                    if status == 304 { #expect(answer.body.isEmpty) }
                    expectEqual(answer.head.has("Content-Length"), status == 200)
                }
            }
        }

        @Test func `other methods, content and other spellings get no plan`() throws {
            let bench = try Bench(more: Self.on)
            defer { bench.stop() }
            let post = try bench.gateway.ask(Self.request("POST"))
            #expect((post.status, post.head.value("Allow")) == (405, "GET, HEAD"))
            for path in ["/plan/", "/PLAN", "/plan.json", "/%70lan"] {
                let answer = try bench.gateway.ask(
                    Self.request("GET", "/.well-known/app-attest" + path)
                )
                expectEqual(answer.status, 404, "\(path)")
                expectEqual(answer.head.value("Cache-Control"), "no-store")
            }
            let content = Self.request("GET", Self.path, "Content-Length: 1\r\n") + "x"
            try expectEqual(bench.gateway.ask(content).status / 100, 4)
            try expectEqual(bench.gateway.ask(Self.request("GET", Self.path + "?a=b")).status, 200)
            #expect(bench.origin.requests.isEmpty)
        }

        @Test(arguments: ["", "plan: off"])
        func `no plan is served unless the configuration says so`(more: String) throws {
            let bench = try Bench(more: more)
            defer { bench.stop() }
            let answer = try bench.gateway.ask(Self.request())
            expectEqual(answer.status, 404)
            #expect(answer.text.contains("no-such-endpoint"))
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `a plan is served over HTTP/2, and a 304 ends with its head`() throws {
            let bench = try Bench(http2: true, more: Self.on)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let answer = try client.ask(HTTP2Client.get(Self.path))
            expectEqual(answer.status, 200)
            #expect(answer.text == String(decoding: try Self.printed(bench.gateway), as: UTF8.self))
            let tag = try #require(answer.value("etag"))
            let again = try client.ask(HTTP2Client.get(Self.path, [("if-none-match", tag)]))
            #expect((again.status, again.text) == (304, ""))
            expectEqual(again.value("etag"), tag)
            expectEqual(again.value("content-length"), nil)
        }

        @Test func `after a reload the plan is that of the new rules, with another tag`() throws {
            let bench = try Bench(more: Self.on)
            defer { bench.stop() }
            let first = try bench.gateway.ask(Self.request())
            let tag = try #require(first.head.value("ETag"))
            let file = bench.gateway.folder + "/portcullis.yaml"
            let text = try String(contentsOfFile: file, encoding: .utf8)
            func reload(_ text: String, _ generation: UInt64) throws {
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                bench.gateway.server.readAgain()
                try bench.gateway.server.wait { $0.configuration.generation == generation }
            }
            try reload(text.replacing("/photos/**", with: "/pictures/**"), 2)
            let asked = Self.request("GET", Self.path, "If-None-Match: \(tag)\r\n")
            let second = try bench.gateway.ask(asked)
            expectEqual(second.status, 200)
            #expect(second.text.contains("/pictures/**"))
            #expect(second.body == (try Self.printed(bench.gateway)))
            #expect(second.head.value("ETag") != tag)
            // The rules of before have the tag of before, on every gateway of a fleet.
            try reload(text, 3)
            try expectEqual(bench.gateway.ask(asked).status, 304)
            try reload(text.replacing("plan: on", with: "plan: off"), 4)
            try expectEqual(bench.gateway.ask(asked).status, 404)
        }

        /// Each answer is in memory until its client takes it.
        @Test func `clients that take no plan hold a bounded amount of memory`() throws {
            let rules = (0..<400).map {
                "  - { id: rule-\($0), match: { path: /\($0) }, mode: off, origin: shop }"
            }
            let bench = try Bench(
                http2: true,
                more: "plan: on\nadmin: { address: 127.0.0.1:0 }\n"
                    + "limits: { address_calls: off, http2: { unsent: 1MiB } }\nrules:\n"
                    + rules.joined(separator: "\n")
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2(settings: [(4, 0)])
            let ids = try (0..<60).map { _ in try client.open(HTTP2Client.get(Self.path)) }
            try client.readUntil {
                ids.allSatisfy { client.soFar($0).status == 200 || client.soFar($0).reset != nil }
            }
            let lines = try bench.gateway.askOperators("/metrics").text.split(separator: "\n")
            let line = lines.first { $0.hasPrefix("portcullis_http2_unsent_bytes ") }
            let unsent = try #require(line?.split(separator: " ").last.flatMap { Int($0) })
            let size = try Self.printed(bench.gateway).count
            #expect(size > 64 << 10)
            #expect((size...(1 << 20) + size).contains(unsent))
        }

        @Test func `plans count among an address's calls, a long one more than once`() throws {
            let rules = (0..<100).map {
                "  - { id: rule-\($0), match: { path: /\($0) }, mode: off, origin: shop }"
            }
            let bench = try Bench(
                more: "plan: on\nlimits: { address_calls: 2/s }\nrules:\n"
                    + rules.joined(separator: "\n")
            )
            defer { bench.stop() }
            let first = try bench.gateway.ask(Self.request())
            expectEqual(first.status, 200)
            #expect(first.body.count > 16 << 10)
            let tag = try #require(first.head.value("ETag"))
            let second = try bench.gateway.ask(
                Self.request("GET", Self.path, "If-None-Match: \(tag)\r\n")
            )
            expectEqual(second.status, 429)
            #expect(second.head.has("Retry-After"))
            expectEqual(second.head.value("Cache-Control"), "no-store")
        }
    }
}
