import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import Parties
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What Apple's two bits of a device do to requests.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct Devices {
        @Test func `a second trial is refused after a reinstall, and another device gets its own`()
            throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            let first = try stand.send("/v1/trial")
            expectEqual(first.status, 200)
            #expect(first.head.all("App-Attest-Device-Bits").isEmpty)
            let seen = try stand.trials.seen(1)[0]
            expectEqual(seen.head.all("App-Attest-Device-Bits"), ["bit0=0, bit1=0"])
            #expect(seen.head.all("App-Attest-Device-Token").isEmpty)
            #expect(stand.awaitBits(true, false))
            try stand.reinstall()
            let second = try stand.send("/v1/trial")
            #expect(second.status == 403 && second.reason == "device-flagged")
            expectEqual(second.member("next"), "none")
            expectEqual(stand.trials.seen.count, 1)
            try expectEqual(stand.send("/v1/trial", token: DeviceStand.token("tablet")).status, 200)
            #expect(stand.awaitBits(true, false, of: "tablet"))
            try stand.await("device_updates_total", 2)
            try expectEqual(stand.metrics()["device_checks_total"], 3)
        }

        @Test func `a request that is refused anyway costs no call`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            func token() -> [(name: String, value: String)] {
                [(name: "App-Attest-Device-Token", value: DeviceStand.token())]
            }
            let unproven = try stand.client.send("POST", "/v1/kind", token(), content: [1])
            expectEqual(unproven.reason, "assertion-missing")
            expectEqual(stand.apple.calls.count, 0)
            let (request, proof) = stand.signed("/v1/kind", token: nil)
            let answers = try (0..<2).map { _ in
                try stand.client.send(
                    "POST",
                    request.target,
                    proof + token(),
                    content: request.content
                )
            }
            expectEqual(answers.map(\.status), [200, 401])
            expectEqual(answers[1].reason, "counter-replayed")
            expectEqual(stand.apple.calls.count, 1)
        }

        @Test func `a token is asked for, and must be one`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            for path in ["/v1/trial", "/v1/kind"] {
                let missing = try stand.send(path, token: nil)
                #expect(missing.status == 400 && missing.reason == "device-token-missing")
                let odd = try stand.send(path, token: "no base64")
                #expect(odd.status == 400 && odd.reason == "device-token-malformed")
                expectEqual(odd.member("next"), "fix-client")
            }
            expectEqual(stand.apple.calls.count, 0)
            // What Apple does not take for one is no failure of Apple's: on_error is not asked.
            let refused = try stand.send("/v1/kind", token: "AAAA")
            #expect(refused.status == 400 && refused.reason == "device-token-malformed")
            expectEqual(stand.apple.calls.count, 1)
            #expect(stand.shop.seen.isEmpty && stand.trials.seen.isEmpty)
        }

        @Test func `a token is good once, also beside itself, and with another key`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            let token = DeviceStand.token()
            try expectEqual(stand.send("/v1/kind", token: token).status, 200)
            let again = try stand.send("/v1/kind", token: token)
            #expect(again.status == 400 && again.reason == "device-token-used")
            expectEqual(again.member("next"), "fix-client")
            try stand.reinstall()
            try expectEqual(stand.send("/v1/kind", token: token).reason, "device-token-used")
            expectEqual(stand.apple.calls.of(.queryBits).count, 1)
        }

        @Test func `a token about which Apple said nothing is good again`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            let token = DeviceStand.token()
            stand.apple.next(.queryBits, .status(500))
            try expectEqual(stand.send("/v1/trial", token: token).status, 503)
            try expectEqual(stand.send("/v1/trial", token: token).status, 200)
        }

        @Test(arguments: [
            StandInPlay.status(401), .status(403), .status(405), .status(429), .status(500),
            .status(503, retryAfter: 1), .status(200, body: "OK"), .status(200, body: "{}"),
            .status(400, body: "Missing or incorrectly formatted time stamp"), .garbage, .cut,
            .long(bytes: 300_000),
        ])
        func `what Apple does not tell is refused or forwarded as on_error says`(
            play: StandInPlay
        ) throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.always(.queryBits, play)
            let refused = try stand.send("/v1/trial")
            #expect(refused.status == 503 && refused.reason == "device-check-unavailable")
            #expect(refused.value("Retry-After") != nil)
            expectEqual(refused.member("next"), "retry-later")
            try expectEqual(stand.send("/v1/kind").status, 200)
            let seen = try stand.shop.seen(1)[0]
            expectEqual(seen.head.all("App-Attest-Verdict"), ["error"])
            expectEqual(seen.head.all("App-Attest-Reason"), ["device-check-unavailable"])
            #expect(seen.head.all("App-Attest-Device-Bits").isEmpty)
        }

        @Test func `plain text says that bits were never set, and is no error`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            for text in ["Failed to find bit state", "Bit State Not Found"] {
                stand.apple.next(.queryBits, .status(200, body: text))
                try expectEqual(stand.send("/v1/kind").status, 200)
            }
            for seen in try stand.shop.seen(2) {
                expectEqual(seen.head.all("App-Attest-Verdict"), ["pass"])
                expectEqual(seen.head.all("App-Attest-Device-Bits"), ["bit0=0, bit1=0"])
            }
        }

        @Test func `a condition holds with all its parts, and one of several is enough`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            for (bit0, bit1) in [(false, false), (false, true), (true, false), (true, true)] {
                stand.apple.setBits(of: "phone", bit0, bit1)
                let both = try stand.send("/v1/both").status
                expectEqual(both, bit0 && bit1 ? 403 : 200)
                let either = try stand.send("/v1/kind").status
                expectEqual(either, bit0 || bit1 ? 403 : 200)
            }
        }

        @Test func `where a rule observes, the origin is told and decides`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", true, true)
            try expectEqual(stand.send("/v1/watched").status, 200)
            try expectEqual(stand.send("/v1/watched", token: nil).status, 200)
            let seen = try stand.shop.seen(2)
            expectEqual(seen[0].head.all("App-Attest-Verdict"), ["refuse"])
            expectEqual(seen[0].head.all("App-Attest-Reason"), ["device-flagged"])
            expectEqual(seen[0].head.all("App-Attest-Device-Bits"), ["bit0=1, bit1=1"])
            expectEqual(seen[1].head.all("App-Attest-Reason"), ["device-token-missing"])
        }
    }
}
