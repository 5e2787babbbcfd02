import AppAttest
import Cryptography
import Expectations
import Foundation
import GRDB
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What holds over a stop and over a kill.
    @Suite struct Crashes {
        enum Ending: String, CaseIterable, Sendable { case stop, kill }

        private static let rules = StockRule.list(
            .signed,
            .bare,
            .window,
            more: """
                - id: legacy
                  match: { path: /v1/legacy }
                  mode: enforce
                  sign: content
                  challenge: none
                - id: challenged
                  match: { path: /v1/challenged }
                  mode: enforce
                  sign: challenge
                """
        )

        private func end(_ gateway: GatewayProcess, _ ending: Ending) throws {
            switch ending {
            case .stop: try expectEqual(gateway.stop(), 0)
            case .kill: try gateway.crash()
            }
        }

        /// The counter of each stored key.
        private func counters(_ scenario: Scenario) throws -> [String: Int] {
            let config = scenario.path("portcullis.yaml")
            let list = try scenario.portcullis("keys", "list", "--config", config)
            let rows = list.printed.split(separator: "\n").map { $0.split(separator: "\t") }
            return Dictionary(uniqueKeysWithValues: rows.map { (String($0[0]), Int($0[4]) ?? -1) })
        }

        @Test(arguments: Ending.allCases)
        func `a replay is refused over a restart, with a challenge and without`(
            ending: Ending
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let forms: [(path: String, signing: SigningForm, hasChallenge: Bool)] = [
                ("signed", .lines(.all, headers: []), true),
                ("bare", .lines([.method, .target], headers: []), false),
                ("window", .lines([.method, .target], headers: []), false),
                ("legacy", .content, false), ("challenged", .challenge, true),
            ]
            var keys = try scenario.imported(forms.count)
            var sent: [[UInt8]] = []
            let first = try scenario.serve()
            let client = first.client()
            for (number, form) in forms.enumerated() {
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: "/v1/\(form.path)",
                    content: Array("content".utf8),
                    challenge: form.hasChallenge
                        ? try first.challenges("assertion", client)[0] : nil
                )
                let proof = keys[number].proof(of: request, signing: form.signing)
                let fields = proof.fields + [("Content-Length", String(request.content.count))]
                let head = HTTPClient.head("POST", request.target, fields)
                sent.append(Array((head + "\r\n").utf8) + request.content)
                try expectEqual(client.send(raw: sent[number]).status, 200, "\(form.path)")
            }
            try end(first, ending)
            let second = try scenario.serve()
            for (number, form) in forms.enumerated() {
                let answer = try second.client().send(raw: sent[number])
                expectEqual(answer.status, 401, "\(form.path)")
                let reasons =
                    form.hasChallenge && ending == .kill
                    ? ["challenge-unknown", "counter-replayed"] : ["counter-replayed"]
                #expect(reasons.contains(answer.reason), "\(form.path): \(answer.reason)")
            }
            expectEqual(origin.seen.count, forms.count)
            // The keys go on where they were.
            for (number, form) in forms.enumerated() {
                let client = second.client()
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: "/v1/\(form.path)",
                    content: Array("more".utf8),
                    challenge: form.hasChallenge
                        ? try second.challenges("assertion", client)[0] : nil
                )
                let proof = keys[number].proof(of: request, signing: form.signing)
                try expectEqual(client.send(request, proof).status, 200, "\(form.path)")
            }
        }

        /// The counters of lines with a challenge are written behind, and the challenge dies with
        /// the process: no other form may accept what was signed.
        @Test func `after a kill an assertion over lines or a challenge is no good as content`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            // The lines come last: whoever waits for the disk takes along what lies before.
            let paths = ["/v1/challenged", "/v1/signed"]
            var keys = try scenario.imported(paths.count)
            let first = try scenario.serve()
            let client = first.client()
            var replays: [[UInt8]] = []
            for (number, path) in paths.enumerated() {
                let isLines = number == 1
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: path,
                    content: Array("content".utf8),
                    challenge: try first.challenges("assertion", client)[0]
                )
                let signing = isLines ? SigningForm.lines(.all, headers: []) : .challenge
                let proof = keys[number].proof(of: request, signing: signing)
                let challenge = Array((request.challenge ?? "").utf8)
                let signed =
                    isLines
                    ? RequestLines.clientData(
                        .all,
                        of: RequestLines.Request(
                            method: request.method,
                            target: request.target,
                            digest: SHA256.digest(of: request.content).array
                        ),
                        challenge: request.challenge ?? ""
                    ) : challenge
                let fields = [
                    ("App-Attest-Key-Id", proof.keyID),
                    ("App-Attest-Assertion", proof.assertion),
                    ("Content-Length", String(signed.count)),
                ]
                let head = HTTPClient.head("POST", "/v1/legacy", fields)
                replays.append(Array((head + "\r\n").utf8) + signed)
                try expectEqual(client.send(request, proof).status, 200)
                // Also while the counter is known: the form is told before it.
                let now = try client.send(raw: replays[number])
                #expect(now.status == 400 || now.reason == "counter-replayed")
            }
            try first.crash()
            let second = try scenario.serve()
            for (replay, path) in zip(replays, paths) {
                let answer = try second.client().send(raw: replay)
                expectEqual(answer.status, 400, "\(path) was admitted twice: \(answer.reason)")
                expectEqual(answer.reason, "client-data-ambiguous")
            }
            expectEqual(origin.seen.count, paths.count)
        }

        @Test(arguments: Ending.allCases)
        func `a challenge from before is unknown after a restart`(ending: Ending) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let first = try scenario.serve()
            let challenge = try first.challenges("assertion", first.client())[0]
            try end(first, ending)
            let second = try scenario.serve()
            let request = SoftwareKey.Request(
                method: "GET",
                target: "/v1/signed",
                challenge: challenge
            )
            let proof = key.proof(of: request, signing: .lines(.all, headers: []))
            let answer = try second.client().send(request, proof)
            expectEqual(answer.reason, "challenge-unknown")
            expectEqual(answer.member("next"), "sign-again")
        }

        @Test(arguments: Ending.allCases)
        func `a key that was answered 201 is there after the end`(ending: Ending) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var stored: Set<String> = []
            for _ in 0..<5 {
                let gateway = try scenario.serve()
                let key = Scenario.device.makeKey()
                try expectEqual(gateway.enrol(key, gateway.client()).status, 201)
                stored.insert(key.keyID.base64)
                try end(gateway, ending)
                try expectEqual(Set(counters(scenario).keys), stored)
            }
        }

        @Test(arguments: Ending.allCases)
        func `a backup from before a revocation does not start after the end, unless accepted`(
            ending: Ending
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, _, key) = try scenario.start(rules: Self.rules)
            let files = FileManager.default
            let (database, backup) = (scenario.path("portcullis.db"), scenario.path("backup.db"))
            let config = scenario.path("portcullis.yaml")
            // As a tool for backups does it: through SQLite, while the gateway runs.
            let live = try DatabaseQueue(path: database)
            try live.backup(to: DatabaseQueue(path: backup))
            try live.close()
            let id = key.keyID.base64
            let revoked = try scenario.portcullis("keys", "revoke", "--config", config, id)
            expectEqual(revoked.status, 0)
            try end(gateway, ending)

            for suffix in ["", "-wal", "-shm"] where files.fileExists(atPath: database + suffix) {
                try files.removeItem(atPath: database + suffix)
            }
            try files.moveItem(atPath: backup, toPath: database)
            let refused = try scenario.portcullis("serve", config)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains("is an older copy"), "\(refused)")
            #expect(refused.complained.contains("keys revoked since pass"))
            let accepted = try scenario.serve(arguments: ["--accept-older-store"])
            try expectEqual(accepted.complaints(of: "is an older copy"), 1)
            try expectEqual(accepted.stop(), 0)
        }
    }
}
