import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// What becomes of the access log when it can't be written.
    @Suite struct Logs {
        private static let dropped = "access_log_lines_dropped_total"

        @Test func `lines for a full disk are counted, and requests are served`() throws {
            // Every write to it fails as on a full disk (full(4)).
            let stand = try Stand(more: "log: { access: /dev/full }")
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            try expectEqual(Metrics(admin)[Self.dropped], 0)
            let client = gateway.client()
            for _ in 0..<5 { try expectEqual(client.send("GET", "/plain").status, 200) }
            try gateway.waitUntil("five lines counted", admin) { $0[Self.dropped] == 5 }
            try stand.stop()
        }

        @Test func `a line that was torn off by a full disk does not run into the next`() throws {
            // Files may grow to so many blocks of 512 bytes; behind that, writes fail.
            let bounded = ["/bin/sh", "-c", #"ulimit -f 1024 && exec "$0" "$@""#]
            let stand = try Stand(more: "log: { access: ./access.log }", loops: 1) {
                try $0.serve(within: bounded)
            }
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            let log = stand.scenario.path("access.log")
            let client = gateway.client()
            let path = "/" + String(repeating: "a", count: 6_000)
            let limit = 1024 * 512
            var sent = 0
            while try Metrics(admin)[Self.dropped] == 0, sent <= limit / 6_000 + 100 {
                try expectEqual(client.send("GET", path).status, 200)
                sent += 1
            }
            #expect(try Metrics(admin)[Self.dropped] >= 1)
            let bytes = try Data(contentsOf: URL(filePath: log))
            #expect(bytes.count == limit && bytes.last != UInt8(ascii: "\n"))
            // There is room again behind the end of the torn line.
            let file = try FileHandle(forUpdating: URL(filePath: log))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: bytes.suffix(10))
            try file.close()
            try expectEqual(client.send("GET", "/plain").status, 200)
            try stand.stop()
            let text = try String(contentsOfFile: log, encoding: .utf8)
            let lines = text.split(separator: "\n")
            expectEqual(lines.first?.utf8.count, 10)
            for line in lines.dropFirst() {
                _ = try JSONSerialization.jsonObject(with: Data(line.utf8))
            }
            expectEqual(lines.last?.contains(#""path":"/plain""#), true)
        }

        @Test func `of an address that floods the log has some refusals, and counts the others`()
            throws
        {
            let stand = try Stand(
                rules: "- { id: r, match: { path: /v1/r }, mode: enforce }",
                more: "log: { access: ./access.log, address_refusals: 1/s }",
                loops: 1
            )
            defer { stand.end() }
            let client = stand.gateway.client()
            for _ in 0..<60 { try expectEqual(client.send("GET", "/v1/r").status, 401) }
            try expectEqual(client.send("GET", "/plain").status, 200)
            try stand.gateway.waitUntil("lines left out", stand.admin) {
                $0["access_log_refusals_left_out_total"] >= 30
            }
            let told = eventually {
                stand.gateway.child.complained.contains("more often than log.address_refusals")
            }
            #expect(told)
            try stand.stop()
            let text = try String(
                contentsOfFile: stand.scenario.path("access.log"),
                encoding: .utf8
            )
            let lines = text.split(separator: "\n")
            #expect((10...30).contains(lines.count { $0.contains(#""status":401"#) }))
            #expect(lines.contains { $0.contains(#""path":"/plain""#) })
        }

        /// Each had a line, whatever the limit: a full disk was some minutes away.
        @Test(arguments: [
            ("GET /plain HTTP/1.1\r\nHost: a\r\nVia: 1.1 portcullis\r\n\r\n", 508),
            ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501),
            ("TRACE /plain HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            ("POST /plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            ("GET /plain HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ])
        func `what a client alone causes counts as a refusal, whatever the status`(
            _ head: String,
            _ status: Int
        ) throws {
            let stand = try Stand(
                more: "log: { access: ./access.log, address_refusals: 1/s }",
                loops: 1
            )
            defer { stand.end() }
            for _ in 0..<60 {
                let wire = try Wire(port: stand.gateway.port)
                defer { wire.close() }
                try wire.send(head)
                try expectEqual(wire.readFinalResponse(to: "GET").status, status)
            }
            try stand.gateway.waitUntil("lines left out", stand.admin) {
                $0["access_log_refusals_left_out_total"] >= 30
            }
            try stand.stop()
            let text = try String(
                contentsOfFile: stand.scenario.path("access.log"),
                encoding: .utf8
            )
            let lines = text.split(separator: "\n").count { $0.contains("\"status\":\(status)") }
            #expect((10...30).contains(lines))
        }

        @Test func `of admitted requests a sample has lines, of refused ones all have`() throws {
            let stand = try Stand(
                rules: "- { id: r, match: { path: /v1/r }, mode: enforce }",
                more: "log: { access: ./access.log, sample: 25% }",
                loops: 1
            )
            defer { stand.end() }
            let client = stand.gateway.client()
            for _ in 0..<8 {
                try expectEqual(client.send("GET", "/plain").status, 200)
                try expectEqual(client.send("GET", "/v1/r").status, 401)
            }
            try stand.stop()
            let text = try String(
                contentsOfFile: stand.scenario.path("access.log"),
                encoding: .utf8
            )
            let lines = text.split(separator: "\n")
            let plain = lines.filter { $0.contains(#""path":"/plain""#) }
            expectEqual(plain.count, 2)
            #expect(plain.allSatisfy { $0.contains(#""sample_ppm":250000"#) })
            #expect(!lines.contains { $0.contains("/v1/r") && $0.contains("sample_ppm") })
            expectEqual(lines.filter { $0.contains(#""path":"/v1/r""#) }.count, 8)
        }

        @Test func `the combined format is written, and a reload changes it`() throws {
            let log = "log: { access: ./access.log, format: combined, time: iso8601 }"
            let stand = try Stand(more: log, loops: 1)
            defer { stand.end() }
            let client = stand.gateway.client()
            let fields = [
                (name: "User-Agent", value: "Shop \"1\""), (name: "Referer", value: "/a?b"),
            ]
            try expectEqual(client.send("GET", "/plain?q=1", fields).status, 200)
            let config = stand.scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: config, encoding: .utf8)
            let json = text.replacing("format: combined", with: "format: json")
            try stand.scenario.write("portcullis.yaml", json)
            stand.gateway.child.signal(SIGHUP)
            _ = try stand.gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(client.send("GET", "/plain").status, 200)
            try stand.stop()
            let file = stand.scenario.path("access.log")
            let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
            expectEqual(lines.count, 2)
            #expect(lines[0].hasPrefix("127.0.0.1 - - ["))
            // The client may speak HTTP/2.
            let end = #"] "GET /plain HTTP/"#
            #expect(lines[0].contains(end) && lines[0].hasSuffix(#" "/a" "Shop \"1\"""#))
            let members = try JSONSerialization.jsonObject(with: Data(lines[1].utf8))
            let line = try #require(members as? [String: Any])
            let time = try #require(line["time"] as? String)
            #expect(line["time_ms"] == nil)
            #expect(time.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
        }

        /// Parties logged at the level of the start.
        @Test func `a reload changes the level of what parties report, too`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try PeopleStand.writeSecret(scenario, "secret")
            func configure(_ level: String) throws {
                try scenario.configure(
                    origin: "127.0.0.1:9",
                    apps: "  - \(Scenario.app)",
                    rules: "- { id: r, match: { path: /r }, mode: enforce, accept: [people] }",
                    more: """
                        log: { level: \(level) }
                        proofs:
                          people: { kind: siteverify, service: turnstile, secret_file: secret,
                            url: "https://127.0.0.1:9/", field: X-Token, hostname: localhost }
                        """
                )
            }
            try configure("notice")
            let gateway = try scenario.serve()
            try configure("debug")
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            let answer = try gateway.client().send("GET", "/r", [("X-Token", "token")])
            expectEqual(answer.status, 503, "\(answer.text)")
            let told = eventually {
                gateway.child.complained.split(separator: "\n").contains {
                    $0.contains(" debug ") && $0.contains("proof people: ")
                }
            }
            #expect(told, "\(gateway.child.complained)")
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a reload moves the access log, stops it and begins it`() throws {
            let stand = try Stand(more: "log: { access: off }")
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            let client = gateway.client()
            let config = stand.scenario.path("portcullis.yaml")
            var setting = "off"
            var generation = 1.0
            let moves = [
                ("./first.log", "/first"), ("./second.log", "/second"), ("off", "/third"),
                ("on", "/fourth"), ("off", "/fifth"), ("./second.log", "/sixth"),
            ]
            try expectEqual(client.send("GET", "/none").status, 200)
            for (next, path) in moves {
                let text = try String(contentsOfFile: config, encoding: .utf8)
                try stand.scenario.write(
                    "portcullis.yaml",
                    text.replacing("log: { access: \(setting) }", with: "log: { access: \(next) }")
                )
                setting = next
                generation += 1
                gateway.child.signal(SIGHUP)
                try gateway.waitUntil("generation \(generation)", admin) {
                    $0["configuration_generation"] == generation
                }
                // Event loops hear of it in their own time; what they did before, they say after.
                try expectEqual(client.send("GET", path).status, 200)
            }
            try stand.stop()
            let logs = try ["first.log", "second.log"].map {
                try String(contentsOfFile: stand.scenario.path($0), encoding: .utf8)
            }
            func paths(_ text: String) -> [String] {
                text.split(separator: "\n").compactMap { line in
                    line.range(of: #""path":""#).map {
                        String(line[$0.upperBound...].prefix { $0 != "\"" })
                    }
                }
            }
            expectEqual(logs.map(paths), [["/first"], ["/second", "/sixth"]])
            expectEqual(paths(gateway.child.printed), ["/fourth"])
        }

        /// Renames the log as logrotate does, and says what was written before and after.
        private func rotate(
            _ number: Int32,
            until told: String,
            breaking: Bool = false
        ) throws -> (before: String, after: String) {
            let stand = try Stand(more: "log: { access: ./access.log }")
            defer { stand.end() }
            let gateway = stand.gateway
            let log = stand.scenario.path("access.log")
            let client = gateway.client()
            try expectEqual(client.send("GET", "/before").status, 200)
            // The line is written behind the answer.
            try gateway.waitUntil("the line", stand.admin) { _ in
                try String(contentsOfFile: log, encoding: .utf8).contains("/before")
            }
            try FileManager.default.moveItem(atPath: log, toPath: log + ".1")
            if breaking { try stand.scenario.write("portcullis.yaml", "origins: nonsense") }
            gateway.child.signal(number)
            _ = try gateway.child.wait(for: told) { $1.contains(told) ? true : nil }
            try expectEqual(client.send("GET", "/after").status, 200)
            try stand.stop()
            return (
                try String(contentsOfFile: log + ".1", encoding: .utf8),
                try String(contentsOfFile: log, encoding: .utf8)
            )
        }

        @Test(arguments: [
            (SIGUSR1, "was opened again", false), (SIGHUP, "reloaded", false),
            (SIGHUP, "was opened again", true),
        ])
        func `a log that was moved aside is opened again for USR1 and for HUP`(
            number: Int32,
            told: String,
            isRefused: Bool
        ) throws {
            let logs = try rotate(number, until: told, breaking: isRefused)
            #expect(logs.before.contains(#""path":"/before""#))
            #expect(!logs.before.contains(#""path":"/after""#))
            #expect(logs.after.contains(#""path":"/after""#))
        }

        @Test func `USR1 without a log file is answered with a line, and changes nothing`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let gateway = stand.gateway
            let told = "there is nothing to open again"
            gateway.child.signal(SIGUSR1)
            _ = try gateway.child.wait(for: told) { $1.contains(told) ? true : nil }
            try expectEqual(gateway.client().send("GET", "/plain").status, 200)
            try stand.stop()
        }

        @Test func `a reload that was refused shows when it was tried`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            let tried = "configuration_last_reload_timestamp_seconds"
            let before = try Metrics(admin)[tried]
            #expect(before == (try Metrics(admin)["start_time_seconds"]))
            try gateway.waitUntil("another second", admin) { $0["uptime_seconds"] > 1.2 }
            try stand.scenario.write("portcullis.yaml", "origins: nonsense")
            gateway.child.signal(SIGHUP)
            try gateway.waitUntil("refused reload", admin) {
                $0["configuration_reloads_refused_total"] == 1
            }
            let metrics = try Metrics(admin)
            #expect(metrics[tried] > before)
            expectEqual(metrics["configuration_last_reload_success"], 0)
            expectEqual(metrics["log_lines_dropped_total"], 0)
        }
    }
}
