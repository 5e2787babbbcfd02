import AppAttest
import AppleStandIn
import Cryptography
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import Parties
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Receipts renewed by the gateway at a stand-in for Apple.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct Receipts {
        /// Stores a key with the receipt of its attestation.
        private func imported(_ stand: AppleStand) throws -> SoftwareKey {
            let key = Scenario.device.makeKey()
            let receipt = key.receipt(.attest, clientDataHash: [1], at: stand.now)
            let line =
                key.importLine(as: .test).dropLast()
                + #", "receipt": "\#(Data(receipt).base64EncodedString())"}"#
            try stand.scenario.write("keys.jsonl", line + "\n")
            let result = try command(stand, "keys", "import", stand.scenario.path("keys.jsonl"))
            expectEqual(result.status, 0, "\(result)")
            return key
        }

        private func command(_ stand: AppleStand, _ words: String...) throws -> Scenario.Result {
            let file = stand.scenario.path("portcullis.yaml")
            let arguments = words.prefix(2) + ["--config", file] + words.dropFirst(2)
            return try stand.scenario.portcullis(Array(arguments))
        }

        private func shown(_ stand: AppleStand, _ key: SoftwareKey) throws -> [String: Any] {
            let text = try command(stand, "keys", "show", key.keyID.base64).printed
            return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
        }

        private func wait(
            _ stand: AppleStand,
            _ key: SoftwareKey,
            for outcome: String
        ) throws -> [String: Any] {
            var last: [String: Any] = [:]
            let isReached = try eventually {
                last = try shown(stand, key)
                return last["renewal_outcome"] as? String == outcome
            }
            try #require(isReached, "no \(outcome): \(last)")
            return last
        }

        @Test func `a receipt is renewed when a command asks, and its metric shown and counted`()
            throws
        {
            let stand = try AppleStand()
            defer { stand.end() }
            let key = try imported(stand)
            stand.apple.add(key, riskMetric: 7)
            try expectEqual(command(stand, "receipts", "renew", key.keyID.base64).status, 0)
            // A gateway begins within a second of its clock, at random.
            stand.step(minutes: 1)
            let renewed = try wait(stand, key, for: "renewed")
            #expect(renewed["risk_metric"] as? Int == 7)
            // The receipt is thousands of characters, which hide the rest.
            #expect(renewed["receipt"] == nil)
            #expect(try #require(renewed["receipt_bytes"] as? Int) > 1_000)
            let page = try stand.metrics()
            #expect(page.contains(#"receipt_renewals_total{outcome="renewed"} 1"#))
            #expect(page.contains("portcullis_receipt_risk_metric_count 1\n"))
            let status = try command(stand, "receipts", "status").printed
            #expect(status.contains(#""renewed":1"#))
            #expect(status.contains(#""risk_known":1"#))
            // Apple gives no newer one before a day has passed.
            let again = try command(stand, "receipts", "renew", key.keyID.base64)
            expectEqual(again.status, 1)
            #expect(again.complained.contains("can't be renewed before"))
        }

        /// Apple is never asked about such a key, and an operator finds out why.
        @Test(arguments: ["no-host", "no-credential"])
        func `a receipt that can't be sent is counted by its reason, and holds no other up`(
            why: String
        ) throws {
            let stand = try AppleStand()
            defer { stand.end() }
            let file = stand.scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let other = "{ team: TEAM00000A, key_id: ABC123DEFG, file: key.p8 }"
            let port = try #require(stand.apple.ports[AppleHost(.receipts, .test)])
            let host = #"receipts_test: "https://localhost:\#(port)", "#
            let changed =
                why == "no-host"
                ? text.replacing(host, with: "")
                : text.replacing("TEAM123456, key_id", with: "TEAM00000B, key_id")
                    .replacing("keys: [", with: "keys: [\(other), ")
            #expect(changed != text)
            try stand.scenario.write("portcullis.yaml", changed)
            try stand.reload(until: 2)
            let key = try imported(stand)
            try expectEqual(command(stand, "receipts", "renew", key.keyID.base64).status, 0)
            stand.step(minutes: 1)
            let shown = try wait(stand, key, for: why)
            #expect(shown["renewal_tried_at"] != nil && shown["renewal_due_at"] != nil)
            #expect(try command(stand, "receipts", "status").printed.contains(#""\#(why)":1"#))
            let page = try stand.metrics()
            #expect(page.contains(#"receipt_renewals_total{outcome="\#(why)"} 1"#))
            expectEqual(stand.apple.calls.count, 0)
        }

        @Test func `an answer that is no newer receipt leaves the stored one`() throws {
            let stand = try AppleStand()
            defer { stand.end() }
            let key = try imported(stand)
            stand.apple.add(key, riskMetric: 7)
            stand.apple.always(.receipts, .receiptAsSent)
            let before = try shown(stand, key)["receipt"] as? String
            try expectEqual(command(stand, "receipts", "renew", key.keyID.base64).status, 0)
            stand.step(minutes: 1)
            let after = try wait(stand, key, for: "invalid")
            #expect(after["receipt"] as? String == before)
            #expect(after["risk_metric"] == nil)
        }
    }
}
