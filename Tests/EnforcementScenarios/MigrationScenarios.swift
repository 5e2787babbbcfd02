import AppleStandIn
import Expectations
import Foundation
import Glibc
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// `rules/docs/leaving-app-check.md`, step by step: its files, with the addresses of this
    /// machine, an issuer that can be asked and an app that can be signed for here.
    @Suite(.ofApple) struct Migrations {
        /// Who sends a request.
        private enum Sender: CaseIterable {
            /// The app of before: a token.
            case before
            /// The app that signs, and sends its token too.
            case after
            /// The app that signs wrongly, and sends its token too.
            case wrong
            /// An old device: it says that it can't attest, and sends a token.
            case unable
            /// Nothing that proves anything.
            case stranger
        }

        /// The files of the page, each with its path in the first line.
        private static func files() throws -> [(path: String, text: String)] {
            var place = URL(filePath: #filePath)
            for _ in 0..<3 { place.deleteLastPathComponent() }
            let page = place.appending(path: "rules/docs/leaving-app-check.md")
            return try String(contentsOf: page, encoding: .utf8).components(
                separatedBy: "```yaml\n# "
            )
            .dropFirst().map { part in
                let block = part.components(separatedBy: "```")[0]
                let end = block.firstIndex(of: "\n") ?? block.endIndex
                return (String(block[..<end]), String(block[end...]))
            }
        }

        private final class Stand {
            let scenario: Scenario
            let issuer: StandInServer
            let origin: RecordingOrigin
            let gateway: GatewayProcess
            private let client: HTTPClient
            private var key: SoftwareKey
            private var generation = 1
            private var told: [String: Int] = [:]

            /// - first: the configuration and the rules of the first step.
            init(_ first: [(path: String, text: String)]) throws {
                scenario = try Scenario()
                issuer = try StandInServer(folder: scenario.folder.path)
                issuer.serveStatusList(TokenIssuer.set(.init("one")))
                origin = try scenario.origin()
                let keys = "https://localhost:\(issuer.statusListPort)/attestation/status"
                let replaced = [
                    ("127.0.0.1:8081", "127.0.0.1:0"),
                    ("127.0.0.1:9901", "unix:\(scenario.path("admin.sock"))"),
                    ("127.0.0.1:8080", origin.address),
                    (
                        "{ id: ABCDE12345.com.example.shop, environments: [production] }",
                        Scenario.app
                    ),
                    (
                        "{ url: https://firebaseappcheck.googleapis.com/v1/jwks }",
                        "{ url: \"\(keys)\", roots: \(issuer.rootFile) }"
                    ),
                    ("https://firebaseappcheck.googleapis.com/123456789012", TokenIssuer.name),
                    ("projects/123456789012", "shop"), ("RS256", "ES256"),
                ]
                try scenario.write(
                    "portcullis.yaml",
                    try replaced.reduce(first[0].text) { text, change in
                        try #require(text.contains(change.0), "\(change.0)")
                        return text.replacing(change.0, with: change.1)
                    }
                )
                try FileManager.default.createDirectory(
                    atPath: scenario.path("rules"),
                    withIntermediateDirectories: false
                )
                try Self.write(first[1].text, in: scenario)
                key = try scenario.imported()[0]
                gateway = try scenario.serve()
                client = gateway.client()
                let hasKeys = try eventually {
                    try send(.before).status == 200
                        && origin.seen.last?.head.value("App-Attest-Proof") == "app-check"
                }
                try #require(hasKeys, "the issuer's keys did not come")
                _ = try news()
            }

            func end() {
                issuer.stop()
                scenario.end()
            }

            private static func write(_ rules: String, in scenario: Scenario) throws {
                try scenario.write(
                    "rules/orders.yaml",
                    Scenario.naming(Scenario.appID, in: rules)
                )
            }

            /// The next step's rules.
            func change(to rules: String) throws {
                try Self.write(rules, in: scenario)
                gateway.child.signal(SIGHUP)
                generation += 1
                let text = "generation \(generation)"
                _ = try gateway.child.wait(for: text) { _, complained in
                    complained.contains(text) ? true : nil
                }
            }

            func send(_ sender: Sender) throws -> Answer {
                let token = ("X-Firebase-AppCheck", TokenIssuer.token())
                let target = "/v1/orders/1"
                switch sender {
                case .before: return try client.send("GET", target, [token])
                case .unable:
                    return try client.send("GET", target, [token, ("App-Attest-Unsupported", "1")])
                case .stranger: return try client.send("GET", target)
                case .after, .wrong:
                    let request = SoftwareKey.Request(
                        method: "GET",
                        target: target,
                        challenge: try gateway.challenges("assertion", client)[0]
                    )
                    let proof = key.proof(
                        of: request,
                        signing: .lines(.all, headers: []),
                        damage: sender == .wrong ? .signature : nil
                    )
                    return try client.send(request, proof, more: [token])
                }
            }

            /// Which requests of one each are admitted, and the proof that the origin is told.
            func play() throws -> [Sender: String] {
                try Sender.allCases.reduce(into: [:]) { found, sender in
                    guard try send(sender).status == 200 else { return }
                    found[sender] = origin.seen.last?.head.value("App-Attest-Proof") ?? "none"
                }
            }

            /// What the report counts more than before, by column and by proof.
            func news() throws -> [String: Int] {
                let result = try scenario.portcullis(
                    ["report", "--json", "--config", scenario.path("portcullis.yaml")]
                )
                let document = try JSONSerialization.jsonObject(with: Data(result.printed.utf8))
                let rules = (document as? [String: Any])?["rules"] as? [[String: Any]] ?? []
                let rule = try #require(rules.first { $0["id"] as? String == "orders" })
                let windows = try #require(rule["windows"] as? [[String: Any]])
                var counts = windows[1]["proofs"] as? [String: Int] ?? [:]
                for column in ["verified", "missing", "invalid", "refused"] {
                    counts[column] = windows[1][column] as? Int
                }
                defer { told = counts }
                return counts.reduce(into: [:]) { news, entry in
                    let more = entry.value - told[entry.key, default: 0]
                    if more != 0 { news[entry.key] = more }
                }
            }
        }

        @Test func `the page's steps admit and report what it says`() throws {
            let files = try Self.files()
            try #require(
                files.map(\.path) == ["move/portcullis.yaml"]
                    + Array(repeating: "move/rules/orders.yaml", count: 3)
            )
            let stand = try Stand(files)
            defer { stand.end() }
            // Observed: all pass, and the report says who would not.
            let both = [
                Sender.before: "app-check", .after: "assertion", .wrong: "app-check",
                .unable: "app-check",
            ]
            var expected = both
            expected[.stranger] = "none"
            try expectEqual(stand.play(), expected)
            let passed = ["verified": 4, "assertion": 1, "app-check": 3, "missing": 1]
            try expectEqual(stand.news(), passed)

            // Both are accepted: only who has neither is refused.
            try stand.change(to: files[2].text)
            try expectEqual(stand.play(), both)
            try expectEqual(stand.news(), passed.merging(["refused": 1]) { $1 })
            #expect(
                eventually {
                    stand.gateway.child.printed.contains(#""instead_of":"signature-mismatch""#)
                }
            )

            // Signatures alone, and the token where a device can't attest.
            try stand.change(to: files[3].text)
            try expectEqual(stand.play(), [.after: "assertion", .unable: "app-check"])
            let news = try stand.news()
            expectEqual(
                news,
                [
                    "verified": 2, "assertion": 1, "app-check": 1, "missing": 2, "invalid": 1,
                    "refused": 3,
                ]
            )
        }
    }
}
