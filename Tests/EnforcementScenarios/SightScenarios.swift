import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What an operator sees of a request: where its time went, and which client it came from.
    @Suite(.ofApple) struct Sights {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            - id: profile
              match: { path: /v1/profile }
              mode: observe
              sign: [method, target]
            """
        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")

        private func agent(_ darwin: String) -> (name: String, value: String) {
            (name: "User-Agent", value: "Shop/1042 CFNetwork/3826.500.131 Darwin/\(darwin)")
        }

        private func microseconds(_ line: [String: Any], _ name: String) throws -> Int {
            try #require(line[name] as? Int, "\(name)")
        }

        @Test func `a line says where the time of a request went`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let proof = key.proof(of: Self.request, signing: Self.signing)
            try expectEqual(gateway.client().send(Self.request, proof).status, 200)
            let line = try gateway.line(about: "/v1/orders")
            let (all, judged) = try (
                microseconds(line, "duration_us"), microseconds(line, "verify_us")
            )
            // A signature takes tens of microseconds, and an answer a round trip.
            #expect(judged > 0 && judged <= all)
            let waited = try microseconds(line, "origin_us")
            #expect(waited > 0 && judged + waited <= all)
            #expect(line["party_us"] == nil && line["upload_us"] == nil)

            // Content that comes in two pieces; what is not judged has no time for it.
            let wire = try Wire(port: gateway.port)
            defer { wire.close() }
            try wire.send("POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
            try origin.awaitHeads(2)
            try wire.send("b")
            try expectEqual(wire.readFinalResponse(to: "POST").status, 200)
            let upload = try gateway.line(about: "/plain")
            #expect(try microseconds(upload, "upload_us") > 0)
            #expect(upload["verify_us"] == nil && upload["wait_us"] == nil)
        }

        @Test func `one command says which rule refuses iOS 26_1, and another one says why`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let file = scenario.path("portcullis.yaml")
            let socket = "unix:\(scenario.path("admin.sock"))"
            try scenario.write(
                "portcullis.yaml",
                try String(contentsOfFile: file, encoding: .utf8).replacing(
                    "admin: { address: 127.0.0.1:0 }",
                    with: "admin: { address: \"\(socket)\" }"
                )
            )
            let gateway = try scenario.serve()
            let client = gateway.client()
            for (darwin, count) in [("25.1.0", 3), ("24.5.0", 1)] {
                for _ in 0..<count {
                    let agent = agent(darwin)
                    try expectEqual(client.send("GET", "/v1/orders", [agent]).status, 401)
                    try expectEqual(client.send("GET", "/v1/profile", [agent]).status, 200)
                }
            }
            // The last of them, which may be written after its answer has come.
            let line = try gateway.line(about: "/v1/orders", after: 3)
            #expect(line["os"] as? String == "apple" && line["os_version"] as? String == "18.5")
            func run(_ words: String...) throws -> [Substring] {
                let told = try scenario.portcullis(words + ["--config", file])
                expectEqual(told.status, 0, "\(told.complained)")
                return told.printed.split(separator: "\n")
            }
            let report = try run("report", "--by", "os", "--only", "iOS 26.1")
            expectEqual(report.count, 4, "\(report)")
            let words = report.map { $0.split(separator: " ").map(String.init) }
            expectEqual(
                words[2],
                ["apple", "26.1", "orders", "0", "3", "0", "0", "0", "3", "assertion-missing", "3"]
            )
            expectEqual(
                words[3],
                [
                    "apple", "26.1", "profile", "0", "3", "0", "0", "0", "0", "assertion-missing",
                    "3",
                ]
            )
            let builds = try run("report", "--by", "build")
            #expect(builds[2].hasPrefix("    1042 (claimed)  orders"), "\(builds)")
            let why = try run("why", "--by", "os", "--only", "iOS 26.1")
            expectEqual(why.count, 4, "\(why)")
            #expect(why.contains { $0.contains("orders") && $0.contains("refused") }, "\(why)")
            let id = try #require(line["request_id"] as? String)
            let told = try run("why", id)
            #expect(told.contains("  of      build 1042 (claimed), apple 18.5 (claimed)"))
            for wrong in [["why"], ["why", "abcd", "--by", "os"], ["report", "--only", "x"]] {
                try expectEqual(scenario.portcullis(wrong + ["--config", file]).status, 2)
            }
        }

        @Test func `a line in the combined format ends with times where that is asked for`()
            throws
        {
            let stand = try Stand(
                rules: "- { id: r, match: { path: /v1/r }, mode: observe }",
                more: "log: { access: ./access.log, format: combined-times }",
                loops: 1
            )
            defer { stand.end() }
            let client = stand.gateway.client()
            try expectEqual(client.send("GET", "/v1/r", [agent("25.1.0")]).status, 200)
            try stand.stop()
            let path = stand.scenario.path("access.log")
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let behind = try #require(text.split(separator: "Darwin/25.1.0\" ").last)
            let members = behind.split(whereSeparator: \.isWhitespace)
                .map { $0.split(separator: "=").map(String.init) }
            let expected = [
                "duration_us", "verify_us", "origin_us", "os", "os_version", "app_version",
            ]
            expectEqual(members.map(\.first), expected, "\(text)")
            expectEqual(members.suffix(3).map(\.last), ["apple", "26.1", "1042"])
        }

        @Test func `metrics have judging, waiting and origin by rule`() throws {
            let stand = try Stand(rules: "- { id: r, match: { path: /v1/r }, mode: observe }")
            defer { stand.end() }
            let client = stand.gateway.client()
            try expectEqual(client.send("GET", "/v1/r").status, 200)
            try stand.gateway.waitUntil("the request", stand.admin) {
                $0["rule_judging_seconds_count"] == 1
            }
            let page = try stand.admin.send("GET", "/metrics").text
            for name in ["judging", "origin", "request"] {
                #expect(page.contains("portcullis_rule_\(name)_seconds_count{rule=\"r\""))
            }
            #expect(!page.contains("portcullis_rule_waiting_seconds_count{"))
            #expect(page.contains("# TYPE portcullis_rule_waiting_seconds histogram"))
        }
    }
}
