import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// The dashboard, and who may change something by it. What it looks like in a browser is for
    /// Tests/Dashboard.
    @Suite(.enabled(if: Scenario.isPossible)) struct Dashboards {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            """
        private static let token = String(repeating: "0123456789abcdef", count: 4)

        /// A gateway, and an admin listener that is asked as a browser asks.
        private final class Stand {
            let scenario: Scenario
            private(set) var gateway: GatewayProcess?
            private let socket: String?
            private(set) var admin: HTTPClient

            /// - admin: the members of `admin`.
            init(admin: String = "address: 127.0.0.1:0") throws {
                scenario = try Scenario()
                let isUnix = admin.contains("unix")
                socket = isUnix ? scenario.path("admin.sock") : nil
                self.admin = HTTPClient(path: scenario.path("admin.sock"))
                try scenario.configure(try scenario.origin(), rules: Dashboards.rules)
                try write("portcullis.yaml", admin.replacing("unix", with: "unix:\(socket ?? "")"))
                try writeToken(Dashboards.token)
                let gateway = try scenario.serve()
                self.gateway = gateway
                if !isUnix { self.admin = try gateway.adminClient() }
            }

            func write(_ name: String, _ admin: String) throws {
                let file = scenario.path("portcullis.yaml")
                let text = try String(contentsOfFile: file, encoding: .utf8)
                let old = "admin: { address: 127.0.0.1:0 }"
                try scenario.write(name, text.replacing(old, with: "admin: { \(admin) }"))
            }

            func writeToken(_ token: String) throws {
                try scenario.write("token", token + "\n")
                let attributes = [FileAttributeKey.posixPermissions: 0o600]
                try FileManager.default.setAttributes(
                    attributes,
                    ofItemAtPath: scenario.path("token")
                )
            }

            func ask(
                _ line: String,
                host: String = "127.0.0.1:9901",
                _ fields: String...,
                content: String = ""
            ) throws -> Answer {
                var lines = ["\(line) HTTP/1.1", "Host: \(host)"] + fields
                if !content.isEmpty { lines.append("Content-Length: \(content.utf8.count)") }
                let text = lines.joined(separator: "\r\n") + "\r\n\r\n" + content
                return try admin.send(raw: Array(text.utf8))
            }

            /// Orders that the rule observes.
            func observe(host: String = "127.0.0.1:9901", _ fields: String...) throws -> Answer {
                let call = #"{"rule":"orders","to":"observe"}"#
                let all = (["POST /rollout/change HTTP/1.1", "Host: \(host)"] + fields)
                    .joined(separator: "\r\n")
                let length = "\r\nContent-Length: \(call.utf8.count)\r\n\r\n"
                return try admin.send(raw: Array((all + length + call).utf8))
            }

            /// What a request without a proof is answered.
            func answer() throws -> Int {
                try #require(gateway).client().send("GET", "/v1/orders").status
            }
        }

        @Test func `the page is served with a policy that admits its own script alone`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            for path in ["/", "/dashboard"] {
                let answer = try stand.ask("GET \(path)")
                expectEqual(answer.status, 200)
                expectEqual(answer.value("Content-Type"), "text/html; charset=utf-8")
                let policy = try #require(answer.value("Content-Security-Policy"))
                #expect(policy.hasPrefix("default-src 'none'; script-src 'sha256-"))
                #expect(policy.contains("frame-ancestors 'none'"))
                expectEqual(answer.value("X-Content-Type-Options"), "nosniff")
                expectEqual(answer.value("Referrer-Policy"), "no-referrer")
                expectEqual(answer.value("Cache-Control"), "no-store")
                #expect(answer.text.contains(#"<body data-calls="none">"#))
                try expectEqual(stand.ask("GET \(path)", host: "attacker.example").status, 403)
            }
        }

        @Test func `without a token or a Unix socket the page can change nothing`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            try expectEqual(stand.observe().reason, "page-unknown")
            try expectEqual(stand.ask("GET /refusals").reason, "page-unknown")
            try expectEqual(stand.answer(), 401)
        }

        @Test func `the token unlocks changes and the last refusals, and a reload changes it`()
            throws
        {
            let stand = try Stand(admin: "address: 127.0.0.1:0, token_file: token")
            defer { stand.scenario.end() }
            let gateway = try #require(stand.gateway)
            let shown = "Authorization: Bearer \(Dashboards.token)"
            #expect(try stand.ask("GET /dashboard").text.contains(#"data-calls="token""#))
            let refused = try stand.observe()
            #expect(refused.status == 401 && refused.reason == "token-missing")
            expectEqual(refused.value("WWW-Authenticate"), #"Bearer realm="portcullis""#)
            try expectEqual(stand.observe(shown + "0").reason, "token-wrong")
            try expectEqual(stand.ask("GET /refusals").status, 401)
            try expectEqual(stand.answer(), 401)
            // What the page sends, from its own origin.
            let own = "Origin: http://127.0.0.1:9901"
            let refusals = try stand.ask("GET /refusals", shown)
            let notes = try #require(refusals.object?["refusals"] as? [[String: Any]])
            expectEqual(notes.map { $0["reason"] as? String }, ["assertion-missing"])
            #expect(notes.first?["client"] as? String == "127.0.0.1")
            try expectEqual(stand.observe(shown, own).status, 200)
            try expectEqual(stand.answer(), 200)
            // The next token, and the one before.
            let next = String(repeating: "fedcba9876543210", count: 4)
            try stand.writeToken(next)
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(stand.observe(shown).reason, "token-wrong")
            try expectEqual(stand.observe("Authorization: Bearer \(next)").status, 200)
            // Neither is told to anybody.
            let told = gateway.child.printed + gateway.child.complained
            #expect(!told.contains(next) && !told.contains(Dashboards.token))
        }

        @Test func `a token for support shows what names clients, and orders nothing`() throws {
            let stand = try Stand(admin: "address: 127.0.0.1:0, read_token_file: token")
            defer { stand.scenario.end() }
            let shown = "Authorization: Bearer \(Dashboards.token)"
            #expect(try stand.ask("GET /dashboard").text.contains(#"data-calls="lookup""#))
            try expectEqual(stand.answer(), 401)
            for page in ["status", "report/5m/text", "rollout", "metrics"] {
                try expectEqual(stand.ask("GET /\(page)").status, 200, "\(page)")
            }
            for page in ["GET /refusals", "GET /audit"] {
                try expectEqual(stand.ask(page).reason, "token-missing")
                try expectEqual(stand.ask(page, shown + "0").reason, "token-wrong")
                try expectEqual(stand.ask(page, shown).status, 200)
            }
            let refusals = try stand.ask("GET /refusals", shown)
            let notes = try #require(refusals.object?["refusals"] as? [[String: Any]])
            let id = try #require(notes.first?["request_id"] as? String)
            try expectEqual(stand.ask("POST /why", content: id).status, 401)
            let why = try stand.ask("POST /why", shown, content: id)
            #expect(why.status == 200 && why.text.contains("assertion-missing"), "\(why)")
            // The token is no order.
            try expectEqual(stand.observe(shown).reason, "page-unknown")
            for call in ["origins/drain", "upgrade", "rollout/forecast", "device-check/update"] {
                try expectEqual(stand.ask("POST /\(call)", shown).reason, "page-unknown", "\(call)")
            }
            try expectEqual(stand.answer(), 401)
        }

        @Test func `a stranger's page in the operator's browser can't change a rule`() throws {
            for admin in ["address: \"unix\"", "address: 127.0.0.1:0, calls: any"] {
                let stand = try Stand(admin: admin)
                defer { stand.scenario.end() }
                // A form or a script of another site: through `ssh -L`, or straight.
                for fields in ["Origin: https://attacker.example", "Origin: null"] {
                    let answer = try stand.observe(fields, "Content-Type: text/plain")
                    #expect(answer.status == 403 && answer.reason == "cross-site")
                }
                // A site whose name was made to lead to this host: of one origin with it.
                let rebound = "attacker.example:9901"
                try expectEqual(
                    stand.observe(host: rebound, "Origin: http://\(rebound)").reason,
                    "host-refused"
                )
                try expectEqual(stand.ask("GET /refusals", host: rebound).reason, "host-refused")
                try expectEqual(stand.answer(), 401)
                let own = "localhost:9901"
                try expectEqual(stand.observe(host: own, "Origin: http://\(own)").status, 200)
                try expectEqual(stand.answer(), 200)
            }
        }

        @Test func `commands show the token by themselves`() throws {
            let stand = try Stand(admin: "address: 127.0.0.1:0, token_file: token")
            defer { stand.scenario.end() }
            let port: String = try #require(stand.gateway).child.wait(for: "admin listener") {
                _,
                complained in
                guard let start = complained.range(of: "admin on 127.0.0.1:") else { return nil }
                return String(complained[start.upperBound...].prefix { $0.isNumber })
            }
            // The same configuration, with the port that the system has chosen.
            let file = stand.scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let admin = "admin: { address: 127.0.0.1:"
            try stand.scenario.write("named.yaml", text.replacing(admin + "0", with: admin + port))
            let named = stand.scenario.path("named.yaml")
            let done = try stand.scenario.portcullis(
                "rollout",
                "--config",
                named,
                "orders",
                "observe"
            )
            expectEqual(done.status, 0, "\(done.complained)")
            try expectEqual(stand.answer(), 200)
            try stand.writeToken(String(repeating: "f", count: 64))
            let wrong = try stand.scenario.portcullis(
                "rollout",
                "--config",
                named,
                "orders",
                "file"
            )
            expectEqual(wrong.status, 1)
            #expect(wrong.complained.contains("reload the gateway"), "\(wrong.complained)")
            try expectEqual(stand.answer(), 200)
        }
    }
}
