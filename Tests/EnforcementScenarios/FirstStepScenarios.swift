import Expectations
import Foundation
import Glibc
import LoopbackKit
import Testing

extension Scenarios {
    /// The first commands of a new operator: `init` and `doctor`.
    @Suite(.ofApple) struct FirstSteps {
        private static let appID = Scenario.appID

        /// What `doctor` said, by its lines.
        private struct Diagnosis {
            let status: Int32
            let lines: [String]

            init(_ scenario: Scenario, _ file: String = "portcullis.yaml") throws {
                let result = try scenario.portcullis("doctor", scenario.path(file))
                status = result.status
                lines = result.printed.split(separator: "\n").map(String.init)
            }

            /// The lines of a severity about a subject.
            func found(_ severity: String, _ subject: String) -> [String] {
                lines.filter { line in
                    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
                    return words.count == 3 && words[0] == severity && words[1] == subject
                }
            }
        }

        private static func configuration(
            _ server: String,
            listen: String = "127.0.0.1:0",
            more: String = "",
            tls: String = ""
        ) -> String {
            """
            listen: [{ address: "\(listen)"\(tls) }]
            origins: { shop: { servers: ["\(server)"]\(more) } }
            default: { origin: shop, mode: off }

            """
        }

        // MARK: init

        @Test func `what init has written starts, observes, and is never overwritten`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let words = [
                "init", "http://127.0.0.1:\(origin.port)", "--app", Self.appID, "--path",
                "/v1/orders", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--test-root",
                "root.pem", "--folder",
                "first",
            ]
            let made = try scenario.portcullis(words)
            expectEqual(made.status, 0, "\(made)")
            #expect(made.printed.contains("next: portcullis serve first/portcullis.yaml"))
            let checked = try scenario.portcullis("check", scenario.path("first/portcullis.yaml"))
            expectEqual(checked.status, 0, "\(checked)")
            let gateway = try scenario.serve("first/portcullis.yaml")
            try expectEqual(
                HTTPClient(port: gateway.port).send("POST", "/v1/orders", content: [1]).status,
                200
            )
            try expectEqual(HTTPClient(port: gateway.port).send("GET", "/elsewhere").status, 200)
            let seen = try origin.seen(2)
            expectEqual(seen[0].head.value("app-attest-reason"), "assertion-missing")
            expectEqual(seen[1].head.value("app-attest-verdict"), nil)

            let file = scenario.path("first/portcullis.yaml")
            let before = try String(contentsOfFile: file, encoding: .utf8)
            let again = try scenario.portcullis(words.map { $0 == Self.appID ? "T.other" : $0 })
            expectEqual(again.status, 1)
            #expect(again.complained.contains("exists; choose another --folder"))
            try expectEqual(String(contentsOfFile: file, encoding: .utf8), before)
        }

        @Test(arguments: [
            ["--app", "com.example.shop"], ["--app", "bad app"], ["--path", "/v1/{id}"],
            ["--listen", "nowhere"], ["--metrics", "nowhere"],
            ["--test-root", "absent.pem", "--app", "T.a"],
        ])
        func `init names the option that is wrong, and no line of a file that it has not written`(
            words: [String]
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let made = try scenario.portcullis(["init", "10.0.0.5:8080"] + words)
            expectEqual(made.status, 1)
            #expect(made.complained.contains("\(words[0]): found "), "\(made)")
            #expect(!made.complained.contains(".yaml"), "\(made)")
            let path = scenario.path("portcullis")
            #expect(!FileManager.default.fileExists(atPath: path))
        }

        @Test func `the first rule enforces at once, for all and back, by its socket`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.portcullis(
                "init",
                "127.0.0.1:\(origin.port)",
                "--app",
                Self.appID,
                "--test-root",
                "root.pem",
                "--listen",
                "127.0.0.1:0",
                "--metrics",
                "127.0.0.1:0"
            )
            let file = scenario.path("portcullis/portcullis.yaml")
            let rule = try String(
                contentsOfFile: scenario.path("portcullis/rules/10-first.yaml"),
                encoding: .utf8
            )
            #expect(rule.contains("# portcullis rollout --config portcullis.yaml first 1%\n"))
            let gateway = try scenario.serve("portcullis/portcullis.yaml")
            for (order, status) in [("100%", 401), ("observe", 200)] {
                let words = ["rollout", "first", order, "--yes", "--config", file]
                let ordered = try scenario.portcullis(words)
                expectEqual(ordered.status, 0, "\(ordered)")
                try expectEqual(HTTPClient(port: gateway.port).send("GET", "/").status, status)
            }
        }

        @Test func `without an app, init writes a gateway that forwards`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let words = ["127.0.0.1:\(origin.port)", "--listen", "127.0.0.1:0"]
            try expectEqual(scenario.portcullis(["init"] + words).status, 0)
            let gateway = try scenario.serve("portcullis/portcullis.yaml")
            try expectEqual(HTTPClient(port: gateway.port).send("GET", "/a").status, 200)
            try expectEqual(origin.seen(1)[0].head.value("app-attest-verdict"), nil)
            // The next step, as its comments say, takes a reload and no restart.
            let changes = [
                ("portcullis/portcullis.yaml", "# apps:\n#   - {", "apps:\n  - {"),
                ("portcullis/rules/10-first.yaml", "mode: off ", "mode: observe "),
            ]
            for (file, old, new) in changes {
                let text = try String(contentsOfFile: scenario.path(file), encoding: .utf8)
                #expect(text.contains(old), "\(file)")
                try scenario.write(file, text.replacing(old, with: new))
            }
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(HTTPClient(port: gateway.port).send("GET", "/a").status, 200)
            try expectEqual(
                origin.seen(2)[1].head.value("app-attest-reason"),
                "assertion-missing"
            )
        }

        @Test(arguments: [
            (["nowhere"], "<origin>"), (["a:1", "--app", "noprefix"], "--app"),
            (["a:1", "--path", "v1"], "--path"), (["a:1", "--listen", "80"], "--listen"),
            (["a:1", "--app", "T.a", "--test-root", "absent.pem"], "--test-root"),
            (["a:1\nadmin: { address: '0.0.0.0:1' }"], "<origin>"),
        ])
        func `init refuses what can't be configured, and writes nothing`(
            _ words: [String],
            _ key: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let result = try scenario.portcullis(["init"] + words)
            expectEqual(result.status, 1)
            #expect(result.complained.contains(key), "\(result)")
            #expect(result.complained.contains("nothing was written"))
            #expect(!FileManager.default.fileExists(atPath: scenario.path("portcullis")))
        }

        @Test func `an init that can't write all of its files leaves none`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let folder = scenario.path("portcullis")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: false
            )
            // A file in the place of the folder of rules.
            try scenario.write("portcullis/rules", "")
            let result = try scenario.portcullis("init", "10.0.0.5:8080")
            expectEqual(result.status, 1)
            #expect(result.complained.contains("nothing was written"), "\(result)")
            #expect(!FileManager.default.fileExists(atPath: folder + "/portcullis.yaml"))
        }

        @Test func `an init on a full disk leaves no part of a file`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let program = try #require(Scenario.program)
            // The schema is longer than a file may be here.
            let words = ["-c", #"trap '' XFSZ; ulimit -f 8; exec "$@""#, "sh", program]
            let result = try scenario.run("/bin/sh", words + ["init", "10.0.0.5:8080"])
            expectEqual(result.status, 1)
            #expect(result.complained.contains("nothing was written"), "\(result)")
            for name in ["portcullis.yaml", "rules/10-first.yaml", "portcullis.schema.json"] {
                let path = scenario.path("portcullis/\(name)")
                #expect(!FileManager.default.fileExists(atPath: path), "\(name)")
            }
        }

        // MARK: doctor

        @Test func `a doctor finds nothing wrong where nothing is`() throws {
            try Scenario.onBothSides { scenario in
                let origin = try scenario.origin()
                try scenario.configure(
                    origin,
                    rules: "- { id: a, match: { path: /a }, mode: enforce }"
                )
                let diagnosis = try Diagnosis(scenario)
                expectEqual(diagnosis.status, 0, "\(diagnosis.lines)")
                expectEqual(diagnosis.found("ok", "origins").count, 1)
                #expect(diagnosis.found("ok", "origins")[0].contains("answers 200 to HEAD /"))
                // The clock and the limits are this machine's, and its disk may be busy.
                for (subject, count) in [("clock", 1), ("descriptors", 1), ("store", 2)] {
                    let lines = ["ok", "warning"].flatMap { diagnosis.found($0, subject) }
                    expectEqual(lines.count, count, "\(diagnosis.lines)")
                }
                expectEqual(diagnosis.lines.last?.contains(": 0 errors, "), true)
                let folder = scenario.folder.path
                let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                #expect(!names.contains { $0.contains("doctor") })
                let json = try scenario.portcullis(
                    "doctor",
                    "--json",
                    scenario.path("portcullis.yaml")
                )
                let object =
                    try JSONSerialization.jsonObject(with: Data(json.printed.utf8))
                    as? [String: Any]
                #expect(object?["errors"] as? Int == 0)
                expectEqual(
                    (object?["findings"] as? [Any])?.count,
                    diagnosis.lines.count { line in
                        !line.hasPrefix(" ") && !line.contains(": 0 errors")
                    }
                )
            }
        }

        @Test func `a doctor says that an origin takes no connection`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let port = try RefusingPort()
            try scenario.write("portcullis.yaml", Self.configuration(port.address))
            let diagnosis = try Diagnosis(scenario)
            expectEqual(diagnosis.status, 1)
            #expect(diagnosis.found("error", "origins")[0].contains("takes no connection"))
            #expect(diagnosis.lines.contains { $0.contains("next: see whether it runs") })
        }

        @Test func `a doctor says that an origin's certificate is not trusted`() throws {
            let scenario = try Scenario(.tls)
            defer { scenario.end() }
            let origin = try scenario.origin()
            let server = "127.0.0.1:\(origin.port)"
            try scenario.write(
                "portcullis.yaml",
                Self.configuration(server, more: ", tls: verify")
            )
            let untrusted = try Diagnosis(scenario)
            expectEqual(untrusted.status, 1)
            #expect(untrusted.found("error", "origins")[0].contains("certificate-untrusted"))
            try scenario.write("portcullis.yaml", Self.configuration(server))
            let plain = try Diagnosis(scenario)
            expectEqual(plain.status, 1)
            #expect(plain.lines.contains { $0.contains("tls: verify where it speaks TLS") })
        }

        @Test func `a doctor says that a check would take a server out`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let check = ", check: { path: /health, status: 204 }"
            try scenario.write(
                "portcullis.yaml",
                Self.configuration("127.0.0.1:\(origin.port)", more: check)
            )
            let diagnosis = try Diagnosis(scenario)
            expectEqual(diagnosis.status, 1)
            let line = try #require(diagnosis.found("error", "origins").first)
            #expect(line.contains("answers 200 to GET /health, and its check wants 204…204"))
        }

        @Test func `a doctor tells a gateway's own address from one that another program has`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let (socket, port) = try LoopbackKit.listening()
            defer { close(socket) }
            let server = "127.0.0.1:\(origin.port)"
            try scenario.write(
                "portcullis.yaml",
                Self.configuration(server, listen: "127.0.0.1:\(port)")
            )
            let taken = try Diagnosis(scenario)
            expectEqual(taken.status, 1)
            #expect(taken.found("error", "addresses")[0].contains("127.0.0.1:\(port) is held by"))

            try scenario.write("portcullis.yaml", Self.configuration(server))
            let gateway = try scenario.serve()
            let own = Self.configuration(server, listen: "127.0.0.1:\(gateway.port)")
            try scenario.write("own.yaml", own)
            let foreign = try Diagnosis(scenario, "own.yaml")
            let line = try #require(foreign.found("error", "addresses").first)
            #expect(line.contains("a gateway of another configuration, "), "\(line)")
            #expect(line.contains(scenario.path("portcullis.yaml")))
            expectEqual(foreign.status, 1)
            try scenario.write("portcullis.yaml", own)
            let held = try Diagnosis(scenario)
            #expect(held.found("ok", "addresses")[0].contains("a gateway of this configuration"))
            expectEqual(held.status, 0, "\(held.lines)")
        }

        @Test func `a doctor calls a certificate that has ended an error`() throws {
            let scenario = try Scenario(.tls)
            defer { scenario.end() }
            let origin = try scenario.origin()
            let openssl = try #require(Scenario.tool("openssl"))
            let file = scenario.path("old.pem")
            let made = try scenario.run(
                openssl,
                [
                    "x509", "-in", scenario.path("origin.pem"), "-signkey",
                    scenario.path("origin.key"), "-days", "-1", "-out", file,
                ]
            )
            expectEqual(made.status, 0, "\(made)")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600],
                ofItemAtPath: scenario.path("origin.key")
            )
            let text = Self.configuration(
                "127.0.0.1:\(origin.port)",
                more: ", tls: { ca: origin.pem }",
                tls: ", tls: { certificate: old.pem, key: origin.key }"
            )
            try scenario.write("portcullis.yaml", text)
            let diagnosis = try Diagnosis(scenario)
            let line = try #require(diagnosis.found("error", "certificates").first)
            #expect(line.contains("old.pem has ended"), "\(line)")
            expectEqual(diagnosis.found("ok", "certificates"), [])
            expectEqual(diagnosis.status, 1)
        }

        @Test func `a doctor says that clients find no way to a certificate's root`() throws {
            let scenario = try Scenario(.tls)
            defer { scenario.end() }
            let origin = try scenario.origin()
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600],
                ofItemAtPath: scenario.path("origin.key")
            )
            let text = Self.configuration(
                "127.0.0.1:\(origin.port)",
                more: ", tls: { ca: origin.pem }",
                tls: ", tls: { certificate: origin.pem, key: origin.key }"
            )
            try scenario.write("portcullis.yaml", text)
            let diagnosis = try Diagnosis(scenario)
            let line = try #require(diagnosis.found("warning", "certificates").first)
            #expect(line.contains("clients that trust what this machine trusts"), "\(line)")
            #expect(line.contains("self"), "\(line)")
        }

        @Test func `a doctor looks at the machine although the configuration is invalid`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.write("portcullis.yaml", "listen: 1\n")
            let diagnosis = try Diagnosis(scenario)
            expectEqual(diagnosis.status, 1)
            #expect(diagnosis.found("error", "configuration").count >= 3)
            #expect(diagnosis.lines.contains { $0.contains(" descriptors ") })
            expectEqual(diagnosis.found("ok", "origins"), [])
        }
    }
}
