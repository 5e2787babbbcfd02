import ConfigurationReading
import Expectations
import Foundation
import LoopbackKit
import Telemetry
import Testing

extension Scenarios {
    /// The load generator against the gateway: what it finds as expected, and that it finds what is
    /// not.
    @Suite(.ofApple, .enabled(if: Scenario.loadProgram != nil)) struct Loads {
        private static let rules = """
            - id: bare
              match: { path: /v1/bare }
              mode: enforce
              sign: [method, target]
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              headers: [idempotency-key]
            - id: window
              match: { path: /v1/window }
              mode: enforce
              sign: [method, body]
              counter: { window: 64 }
            - id: json
              match: { path: /v1/json }
              mode: enforce
              sign: content
              challenge: { need: required, json_pointer: /auth/challenge }
            - id: presence
              match: { path: /v1/presence }
              mode: enforce
              sign: challenge
            - id: chatty
              match: { path: /v1/chatty }
              mode: enforce
              accept: [assertion, session]
              headers: [idempotency-key]
            - id: observed
              match: { path: /v1/observed }
              mode: observe
              sign: [method, target]
            - id: some
              match: { path: /v1/some }
              mode: enforce
              sign: [method, target]
              rollout: { percent: 5% }
            - id: half
              match: { path: /v1/half }
              mode: enforce
              rollout: { percent: 50% }
            - id: addresses
              match: { path: /v1/addresses }
              mode: enforce
              rollout: { percent: 5%, by: address }
            """

        /// Of 500 requests, 25 and more are of each kind.
        private static let mix = "missing=5%,replayed=15%,tampered=10%,stale=10%,unknown=5%"

        private func load(_ scenario: Scenario, _ arguments: [String]) throws -> Scenario.Result {
            guard let program = Scenario.loadProgram else {
                throw ChildProcess.Failure(description: "no portcullis-load")
            }
            return try scenario.run(program, arguments)
        }

        /// A gateway, and a fleet of which it knows nothing but the root.
        ///
        /// - `app`: further settings of the app's entry.
        private func start(
            _ scenario: Scenario,
            app: String = "",
            more: String = "limits: { address_failures: off }",
            devices: Int = 200
        ) throws -> GatewayProcess {
            let origin = try scenario.origin()
            let made = try load(
                scenario,
                [
                    "prepare", scenario.path("fleet.json"), "--app-id", Scenario.appID,
                    "--devices", "\(devices)", "--keys", scenario.path("keys.jsonl"), "--root",
                    scenario.path("root.pem"),
                ]
            )
            expectEqual(made.status, 0, "\(made)")
            let id = "id: \(Scenario.appID), environments: [test], test_root: root.pem"
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                apps: "  - { \(id)\(app) }",
                rules: Scenario.naming(Scenario.appID, in: Self.rules),
                more: more
            )
            return try scenario.serve()
        }

        private func importKeys(_ scenario: Scenario) throws {
            let config = scenario.path("portcullis.yaml")
            let keys = scenario.path("keys.jsonl")
            let imported = try scenario.portcullis("keys", "import", "--config", config, keys)
            expectEqual(imported.status, 0, "\(imported)")
        }

        private func run(
            _ scenario: Scenario,
            _ gateway: GatewayProcess,
            _ path: String,
            _ arguments: [String] = [],
            count: Int = 500
        ) throws -> Scenario.Result {
            let common = [
                "run", scenario.path("fleet.json"), "http://127.0.0.1:\(gateway.port)\(path)",
                "--config", scenario.path("portcullis.yaml"), "--count", "\(count)", "-c", "16",
                "--mix", Self.mix,
            ]
            return try load(scenario, common + arguments)
        }

        @Test func `every verdict in a hostile mix is as expected, under each kind of rule`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            try importKeys(scenario)
            let content = ["-X", "POST", "--content", "0..2000"]
            let runs: [(path: String, arguments: [String])] = [
                ("/v1/bare", ["--event-loops", "2"]),
                ("/v1/bare?x=1", ["--sign-before", "--rate", "2000"]),
                ("/v1/orders", content + ["-H", "Idempotency-Key: a1"]),
                ("/v1/orders", content + ["--sign-before", "--chunked"]),
                ("/v1/window", content + ["--under-way", "8", "--chunked"]),
                ("/v1/json", content), ("/v1/presence", []),
            ]
            for (path, arguments) in runs {
                let result = try run(scenario, gateway, path, arguments)
                expectEqual(result.status, 0, "\(path) \(arguments): \(result)")
                #expect(result.printed.contains("all 500 as expected; none of "))
                #expect(result.printed.contains("401 counter-replayed"))
                #expect(result.printed.contains("403 signature-mismatch"))
                #expect(result.printed.contains("401 key-unknown"))
            }
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a fleet that signs with sessions gets every verdict of a hostile mix`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            // Devices use a session for 4.5 s, and the second run takes six. A request that is a
            // second late still comes in time.
            let more = "limits: { address_failures: off }\nsessions: { lifetime: 6s }"
            let gateway = try start(scenario, more: more, devices: 20)
            try importKeys(scenario)
            let mix = ["--mix", "missing=5%,replayed=15%,tampered=10%,unknown=5%"]
            for arguments in [
                ["-X", "POST", "--content", "0..2000", "--event-loops", "2"], ["--rate", "80"],
            ] {
                let result = try run(
                    scenario,
                    gateway,
                    "/v1/chatty",
                    ["--sessions"] + mix + arguments
                )
                expectEqual(result.status, 0, "\(arguments): \(result)")
                #expect(result.printed.contains("session opening"))
                #expect(result.printed.contains("401 session-replayed"))
                #expect(result.printed.contains("401 session-mismatch"))
                #expect(result.printed.contains("all 500 as expected; none of "))
            }
            let admin = try gateway.adminClient()
            #expect(try Metrics(admin)["sessions_opened_total"] > 40)
            let refused = try run(scenario, gateway, "/v1/orders", ["--sessions"] + mix)
            expectEqual(refused.status, 2)
            #expect(refused.complained.contains("takes no sessions"), "\(refused)")
            let stale = try run(scenario, gateway, "/v1/chatty", ["--sessions"])
            expectEqual(stale.status, 2)
            #expect(stale.complained.contains("stale"), "\(stale)")
        }

        /// Found as "REPLAYS 38 were ADMITTED" at a rule that is enforced for 5 %.
        @Test func `where a rule observes, or is enforced for some keys, others' faults may pass`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            try importKeys(scenario)
            let json = scenario.path("result.json")
            for (path, unenforced, either) in [
                ("/v1/some", true, true), ("/v1/half", true, true),
                ("/v1/addresses", false, true), ("/v1/observed", true, false),
            ] {
                let result = try run(scenario, gateway, path, ["--json", json])
                expectEqual(result.status, 0, "\(path): \(result)")
                #expect(!result.printed.contains("ADMITTED"), "\(path): \(result)")
                let found = try Self.object(json)
                let (admitted, uncertain) = (
                    found["admitted_unenforced"] as? Int, found["admitted_or_refused"] as? Int
                )
                expectEqual((admitted ?? 0) > 20, unenforced, "\(path): \(result)")
                expectEqual((uncertain ?? 0) > 20, either, "\(path): \(result)")
                expectEqual(found["admitted_replays"] as? Int, 0)
            }
            let half = try run(scenario, gateway, "/v1/half", count: 1_000)
            #expect(half.complained.contains("rule half is enforced for 50% by key"), "\(half)")
            #expect(half.printed.contains("the rollout of 50% by key leaves them out"), "\(half)")
        }

        private static func object(_ file: String) throws -> [String: Any] {
            let text = try Data(contentsOf: URL(filePath: file))
            return try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
        }

        @Test func `a gateway that enforces for more or fewer keys than its file is found out`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            try importKeys(scenario)
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try scenario.write("other.yaml", text.replacing("percent: 50%", with: "percent: 1%"))
            let other = ["--config", scenario.path("other.yaml")]
            let more = try run(scenario, gateway, "/v1/half", other)
            expectEqual(more.status, 1)
            #expect(more.printed.contains("expected admitted, found 401"), "\(more)")
            try scenario.write("other.yaml", text.replacing("percent: 50%", with: "percent: 99%"))
            let fewer = try run(scenario, gateway, "/v1/half", other)
            expectEqual(fewer.status, 1)
            #expect(fewer.printed.contains("replays were ADMITTED"), "\(fewer)")
            #expect(fewer.printed.contains("`portcullis rollout` shows it"), "\(fewer)")
        }

        @Test func `a gateway that only observes, and should not, is found out`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            try importKeys(scenario)
            let file = scenario.path("portcullis.yaml")
            let whole = try String(contentsOfFile: file, encoding: .utf8)
            try scenario.write(
                "other.yaml",
                whole.replacing("mode: observe", with: "mode: enforce")
            )
            let json = scenario.path("result.json")
            let hgrm = scenario.path("result.hgrm")
            let outputs = [
                "--json", json, "--hgrm", hgrm, "--config", scenario.path("other.yaml"),
            ]
            let result = try run(scenario, gateway, "/v1/observed", outputs, count: 400)
            expectEqual(result.status, 1)
            #expect(result.printed.contains("replays were ADMITTED"))
            let text = try Data(contentsOf: URL(filePath: json))
            let object = try JSONSerialization.jsonObject(with: text) as? [String: Any]
            #expect(object?["as_expected"] as? Bool == false)
            #expect(object?["sent"] as? Int == 400)
            #expect((object?["admitted_replays"] as? Int ?? 0) > 20)
            expectEqual((object?["samples"] as? [Any])?.count, 10)
            let distribution = try String(contentsOf: URL(filePath: hgrm), encoding: .utf8)
            #expect(distribution.contains("1/(1-Percentile)"))
            #expect(distribution.contains("Total count"))
        }

        @Test func `a run fails by the limits that it is given, and names the exceeded ones`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            try importKeys(scenario)
            let slow = try run(scenario, gateway, "/v1/bare", ["--fail-if", "max>0ms,wrong>0"])
            expectEqual(slow.status, 1, "\(slow)")
            #expect(slow.printed.contains("all 500 as expected"), "\(slow)")
            #expect(slow.printed.contains("\nlimit       max is "), "\(slow)")
            let within = try run(scenario, gateway, "/v1/bare", ["--fail-if", "max>10m"])
            expectEqual(within.status, 0, "\(within)")
            // All of the rule's faults are admitted, where the configuration would refuse them.
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let enforced = text.replacing("mode: observe", with: "mode: enforce")
            try scenario.write("other.yaml", enforced)
            let other = ["--config", scenario.path("other.yaml"), "--fail-if"]
            let some = try run(scenario, gateway, "/v1/observed", other + ["wrong>500"])
            expectEqual(some.status, 0, "\(some)")
            let wrong = try run(scenario, gateway, "/v1/observed", other + ["wrong>10"])
            #expect(wrong.status == 1 && wrong.printed.contains("more than 10\n"), "\(wrong)")
            let version = try load(scenario, ["--version"])
            #expect(version.status == 0 && version.printed == ProgramVersion.text + "\n")
        }

        @Test func `a fleet enrols through the endpoints, no faster than the gateway lets it`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let throttled = "enrolment: { rate: 20/s, burst: 10 }"
            let gateway = try start(scenario, more: throttled, devices: 40)
            let arguments = [
                "enrol", scenario.path("fleet.json"), "http://127.0.0.1:\(gateway.port)",
                "--config", scenario.path("portcullis.yaml"),
            ]
            let first = try load(scenario, arguments)
            expectEqual(first.status, 0, "\(first)")
            let printed = first.printed.split(separator: "\n")
            expectEqual(printed.first, "enrolled: 40, enrolled already: 0")
            expectEqual(printed.last?.hasSuffix(", attestKey calls: 40"), true, "\(first)")
            let again = try load(scenario, arguments)
            #expect(again.printed.hasPrefix("enrolled: 0, enrolled already: 40\n"))
            let result = try run(scenario, gateway, "/v1/orders", count: 400)
            expectEqual(result.status, 0, "\(result)")
        }

        @Test func `a fleet of both platforms enrols, and each verdict is as expected`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (appID, package) = ("TEAM123456.com.example.load", "com.example.load")
            let made = try load(
                scenario,
                [
                    "prepare", scenario.path("fleet.json"), "--app-id", appID, "--platform",
                    "apple:3,android:1", "--package", package, "--devices", "40", "--root",
                    scenario.path("root.pem"),
                ]
            )
            expectEqual(made.status, 0, "\(made)")
            let origin = try scenario.origin()
            let trust = "environments: [test], test_root: root.pem"
            let signer = String(repeating: "07", count: 32)
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                apps: """
                      - { id: \(appID), \(trust) }
                      - { android: \(package), signers: ["\(signer)"], \(trust), on_error: forward }
                    """,
                rules: Scenario.naming("\(appID), \(package)", in: Self.rules),
                more: "limits: { address_failures: off }"
            )
            let gateway = try scenario.serve()
            let enrolled = try load(
                scenario,
                [
                    "enrol", scenario.path("fleet.json"), "http://127.0.0.1:\(gateway.port)",
                    "--config", scenario.path("portcullis.yaml"),
                ]
            )
            #expect(enrolled.printed.hasPrefix("enrolled: 40,"), "\(enrolled)")
            for (path, more) in [
                ("/v1/orders", ["-X", "POST", "--content", "0..2000"]),
                ("/v1/window", ["--sign-before"]),
            ] {
                let result = try run(scenario, gateway, path, more, count: 400)
                expectEqual(result.status, 0, "\(result)")
            }
            let apps = Set(origin.seen.flatMap { $0.head.all("App-Attest-App-Id") })
            expectEqual(apps, [appID, package])
        }

        private static let tokenRules =
            ["orders", "bare"].map { name in
                """
                - id: \(name)
                  match: { path: /v1/\(name) }
                  mode: enforce
                  sign: [method, target\(name == "bare" ? "" : ", body, challenge")]
                  integrity: { proof: play, device: [strong], licensed: true, action: refuse }
                """
            }
            .joined(separator: "\n") + """

                - id: open
                  match: { path: /v1/open }
                  mode: enforce
                  accept: [assertion, session]
                """

        /// A gateway that asks phones for tokens of Play Integrity, and a fleet of both platforms.
        private func startWithTokens(_ scenario: Scenario) throws -> GatewayProcess {
            let (appID, package) = ("TEAM123456.com.example.load", "com.example.load")
            let made = try load(
                scenario,
                [
                    "prepare", scenario.path("fleet.json"), "--app-id", appID, "--platform",
                    "apple,android:2", "--package", package, "--devices", "30", "--root",
                    scenario.path("root.pem"), "--decryption-key", scenario.path("decrypt.key"),
                    "--verification-key", scenario.path("verify.key"),
                ]
            )
            expectEqual(made.status, 0, "\(made)")
            let trust = "environments: [test], test_root: root.pem"
            let signer = String(repeating: "07", count: 32)
            let demand = "integrity: { proof: play, recognized: true, action: refuse }"
            try scenario.configure(
                origin: try scenario.origin().address,
                apps: """
                      - { id: \(appID), \(trust) }
                      - { android: \(package), signers: ["\(signer)"], \(trust), \(demand) }
                    """,
                rules: Scenario.naming("\(appID), \(package)", in: Self.tokenRules),
                more: """
                    limits: { address_failures: off }
                    proofs:
                      play: { kind: play-integrity, decryption_key: decrypt.key, \
                    verification_key: verify.key }
                    """
            )
            return try scenario.serve()
        }

        @Test func `phones show tokens where rule and enrolment ask for them`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try startWithTokens(scenario)
            let enrolment = [
                "enrol", scenario.path("fleet.json"), "http://127.0.0.1:\(gateway.port)",
                "--config", scenario.path("portcullis.yaml"),
            ]
            let bare = try load(scenario, enrolment)
            #expect(bare.status == 2 && bare.complained.contains("proof-missing"), "\(bare)")
            let enrolled = try load(scenario, enrolment + ["--tokens"])
            expectEqual(enrolled.status, 0, "\(enrolled)")
            for (path, more) in [
                ("/v1/orders", ["-X", "POST", "--content", "0..2000", "--event-loops", "2"]),
                ("/v1/bare", ["--sign-before"]),
            ] {
                let result = try run(scenario, gateway, path, more + ["--tokens"], count: 600)
                expectEqual(result.status, 0, "\(result)")
                #expect(result.printed.contains("all 600 as expected; none of "))
                #expect(result.printed.contains("phones show tokens"))
            }
            let verdicts = try Metrics(try gateway.adminClient())
            // Phones wait longer for their answers, so others take more turns.
            #expect(verdicts["proof_verdicts_total"] > 100)
            // Two of three good requests are phones'.
            let without = try run(scenario, gateway, "/v1/orders", ["-X", "POST"], count: 300)
            expectEqual(without.status, 1, "\(without)")
            #expect(without.complained.contains("give --tokens"))
            #expect(without.printed.contains("401 proof-missing"), "\(without)")
            for (path, arguments, text) in [
                ("/v1/open", ["--tokens"], "asks phones for no token"),
                (
                    "/v1/open", ["--tokens", "--sessions", "--mix", "missing=1%"],
                    "--tokens with --sessions"
                ),
            ] {
                let result = try run(scenario, gateway, path, arguments)
                #expect(result.status == 2 && result.complained.contains(text), "\(result)")
            }
        }

        @Test func `a fleet's receipts are good enough for an app that requires them`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario, app: ", receipt: required", devices: 20)
            let arguments = [
                "enrol", scenario.path("fleet.json"), "http://127.0.0.1:\(gateway.port)",
                "--config", scenario.path("portcullis.yaml"),
            ]
            let enrolled = try load(scenario, arguments)
            expectEqual(enrolled.status, 0, "\(enrolled)")
            #expect(enrolled.printed.hasPrefix("enrolled: 20, enrolled already: 0\n"))
            let result = try run(scenario, gateway, "/v1/orders", count: 200)
            expectEqual(result.status, 0, "\(result)")
        }

        @Test func `a fleet whose app the rule does not admit is told so before it sends`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            try scenario.configure(
                origin: "127.0.0.1:1",
                apps: """
                      - { id: TEAM123456.com.example.live, environments: [production] }
                      - { id: \(Scenario.appID), environments: [test], test_root: root.pem }
                    """,
                rules: Self.rules
            )
            let result = try run(scenario, gateway, "/v1/bare")
            expectEqual(result.status, 2, "\(result)")
            #expect(result.complained.contains("admits no keys of \(Scenario.appID)"), "\(result)")
        }

        @Test func `content of a file is signed as a whole, also where there is none`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            _ = try start(scenario)
            func digest(_ content: String) throws -> String? {
                let result = try load(
                    scenario,
                    [
                        "sign", scenario.path("fleet.json"), "http://127.0.0.1/v1/window",
                        "--config", scenario.path("portcullis.yaml"), "-X", "POST", "-d", content,
                    ]
                )
                expectEqual(result.status, 0, "\(result)")
                let lines = result.printed.split(separator: "\n").map(String.init)
                return lines.first { $0.hasPrefix("content-digest: ") }
            }
            let mebibyte = String(repeating: "x", count: 1 << 20)
            for (name, text) in [("empty", ""), ("one", mebibyte), ("more", mebibyte + "x")] {
                try scenario.write(name, text)
            }
            let one = try #require(try digest("@" + scenario.path("one")))
            #expect(try digest("@" + scenario.path("more")) != one)
            try expectEqual(digest("@" + scenario.path("empty")), digest(""))
        }

        @Test func `fields of a signed request that do not fit on the disk are a failure`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            _ = try start(scenario)
            let program = try #require(Scenario.loadProgram)
            let result = try scenario.run(
                "/bin/sh",
                [
                    "-c", #"exec >/dev/full; exec "$@""#, "sh", program, "sign",
                    scenario.path("fleet.json"), "http://127.0.0.1/v1/bare", "--config",
                    scenario.path("portcullis.yaml"),
                ]
            )
            expectEqual(result.status, 2)
            #expect(result.complained.contains("standard output can't be written: No space left"))
        }

        @Test func `wrong usage, and a gateway that is not there, are told apart from a deviation`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            for (path, arguments, text) in [
                ("/v1/bare", ["--mix", "replays=3%"], "--mix"),
                ("/v1/bare", ["--duration", "5"], "--duration"),
                ("/v1/bare", ["--rate", "1e-10"], "--rate"),
                ("/elsewhere", [], "nothing is verified"),
                ("/.well-known/app-attest/keys", ["-X", "POST"], "endpoints"),
                ("/.well-known/app-attest/keys", [], "method-not-allowed"),
            ] {
                let result = try run(scenario, gateway, path, arguments)
                expectEqual(result.status, 2, "\(result)")
                #expect(result.complained.contains(text), "\(result)")
            }
            try expectEqual(gateway.stop(), 0)
            let gone = try run(scenario, gateway, "/v1/bare")
            expectEqual(gone.status, 2)
            #expect(gone.complained.contains("is the gateway there?"))
            let waited = try run(scenario, gateway, "/v1/bare", ["--wait", "100ms"])
            expectEqual(waited.status, 2)
            #expect(waited.complained.contains("waiting at most 100ms"))
            #expect(waited.complained.contains("is the gateway there?"))
        }

        /// Found as: the commands of the chapter "Load", pasted as they stand, ended with
        /// "connect-failed; is the gateway there?".
        @Test(arguments: ["run", "enrol"])
        func `a load that begins before its gateway waits for it`(_ command: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let first = try start(scenario)
            try importKeys(scenario)
            try expectEqual(first.stop(), 0)
            // Both know the path, and no port has to be free.
            let file = scenario.path("portcullis.yaml")
            let socket = "  - address: \"unix:\(scenario.path("socket"))\"\nadmin:"
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try scenario.write("portcullis.yaml", text.replacing("admin:", with: socket))
            let program = try #require(Scenario.loadProgram)
            var arguments = [
                command, scenario.path("fleet.json"), "http://gateway.test/v1/bare", "--config",
                file, "--connect", "unix:\(scenario.path("socket"))", "--wait", "60s",
            ]
            if command == "run" { arguments += ["--count", "100"] }
            let load = try scenario.start(program, arguments)
            try load.wait(for: "waiting") { _, complained in
                complained.contains("waiting at most 60s") ? () : nil
            }
            let gateway = try scenario.serve()
            try expectEqual(load.waitForEnd(), 0, "\(load.complained)")
            try expectEqual(gateway.stop(), 0)
        }
    }
}
