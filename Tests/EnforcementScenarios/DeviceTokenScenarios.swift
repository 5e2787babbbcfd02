import AppleStandIn
import Encodings
import Expectations
import Foundation
import LoopbackKit
import Parties
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// A device that lives on the token of another one.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct DeviceTokens {
        /// 257 tokens of a clean device were enough to serve a flagged one for ever.
        @Test func `no number of other tokens makes a used one good again`() throws {
            let stand = try DeviceStand(apple: "rate: 1000/s")
            defer { stand.end() }
            let first = DeviceStand.token()
            try expectEqual(stand.send("/v1/kind", token: first).status, 200)
            for _ in 0..<257 { try expectEqual(stand.send("/v1/kind").status, 200) }
            let again = try stand.send("/v1/kind", token: first)
            #expect(again.status == 400 && again.reason == "device-token-used")
            try expectEqual(stand.metrics()["device_tokens_used"], 258)
        }

        @Test func `queries to Apple that were made in vain count against the address`() throws {
            let stand = try DeviceStand(limits: "{ address_failures: 3/m }")
            defer { stand.end() }
            // A text that Apple takes for no token.
            let garbage = Base64.text(Array("no token".utf8))
            let malformed = try stand.send("/v1/kind", token: garbage)
            #expect(malformed.status == 400 && malformed.reason == "device-token-malformed")
            // The origin has Apple flag the device.
            try expectEqual(stand.send("/v1/trial").status, 200)
            try stand.await("device_updates_total", 1)
            for _ in 0..<2 {
                let flagged = try stand.send("/v1/kind")
                #expect(flagged.status == 403 && flagged.reason == "device-flagged")
            }
            let calls = stand.apple.calls.of(.queryBits).count
            let throttled = try stand.send("/v1/kind")
            #expect(throttled.status == 429 && throttled.reason == "address-throttled")
            expectEqual(stand.apple.calls.of(.queryBits).count, calls)
        }

        @Test func `a used token stays so in other spellings, on other loops and after a reload`()
            throws
        {
            let stand = try DeviceStand(loops: 4)
            defer { stand.end() }
            let token = DeviceStand.token()
            try expectEqual(stand.send("/v1/kind", token: token).status, 200)
            let bare = token.replacing("=", with: "")
            let spellings = [
                token, bare, token.replacing("+", with: "-").replacing("/", with: "_"),
                bare.replacing("+", with: "-").replacing("/", with: "_"),
            ]
            func tryAll() throws {
                for spelling in spellings {
                    for path in ["/v1/kind", "/v1/trial"] {
                        // The kernel gives a new connection to any event loop.
                        let answer = try stand.send(
                            path,
                            token: spelling,
                            on: HTTPClient(port: stand.port)
                        )
                        #expect(answer.status == 400 && answer.reason == "device-token-used")
                    }
                }
            }
            try tryAll()
            try stand.reinstall()
            try tryAll()
            try stand.reload([stand.team])
            try tryAll()
            expectEqual(stand.apple.calls.of(.queryBits).count, 1)
        }

        @Test func `of two requests with one token that come at once, one passes`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.next(.queryBits, .slow(milliseconds: 300))
            let token = DeviceStand.token()
            let signed = (0..<4).map { _ in stand.signed("/v1/kind", token: token) }
            let threads = signed.map { request, fields in
                Thread.Answer {
                    try HTTPClient(port: stand.port)
                        .send("POST", request.target, fields, content: request.content)
                }
            }
            let answers = try threads.map { try $0.value() }
            // A counter that comes behind a greater one is refused for itself.
            expectEqual(answers.filter { $0.status == 200 }.count, 1)
            expectEqual(stand.apple.calls.of(.queryBits).count, 1)
            try expectEqual(stand.shop.seen(1).count, 1)
        }

        /// The environment is the key's: a token of the other one is unknown to Apple's host.
        @Test func `a token of another environment is none`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.always(
                .queryBits,
                .status(400, body: "Missing or incorrectly formatted device token payload")
            )
            for path in ["/v1/trial", "/v1/kind"] {
                let answer = try stand.send(path)
                #expect(answer.status == 400 && answer.reason == "device-token-malformed")
            }
            #expect(stand.shop.seen.isEmpty && stand.trials.seen.isEmpty)
        }
    }

    /// Keys of teams that come and go while a change waits.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct DeviceTeams {
        private static let other = StandInTeam(teamID: "TEAM654321", keyID: "GFED321CBA")

        /// Has a change of bits begun that Apple does not take at once. The first try after that
        /// comes seconds later.
        private func waiting(_ stand: DeviceStand, refusals: Int = 1) throws {
            stand.apple.add(Self.other)
            for _ in 0..<refusals { stand.apple.next(.updateBits, .status(503)) }
            try expectEqual(stand.send("/v1/trial").status, 200)
            #expect(stand.apple.wait { !$0.of(.updateBits).isEmpty })
        }

        /// The change was one of "the only team", which is none any more.
        @Test func `a change that waits is made by its own team's key when another team comes`()
            throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            try waiting(stand)
            try stand.reload([Self.other, stand.team])
            #expect(stand.awaitBits(true, false))
            // Calls about receipts have no "Bearer".
            let calls = stand.apple.calls
            let kid = try (calls.of(.queryBits) + calls.of(.updateBits)).map { call in
                let token = try #require(call.authorization).dropFirst("Bearer ".count)
                let head = try #require(token.split(separator: ".").first)
                return String(decoding: try #require(Base64.decode(head)), as: UTF8.self)
            }
            #expect(kid.allSatisfy { $0.contains(stand.team.keyID) })
        }

        @Test func `a change that waits is made when the other team goes`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.add(Self.other)
            try stand.reload([Self.other, stand.team])
            try waiting(stand)
            try stand.reload([stand.team])
            #expect(stand.awaitBits(true, false))
        }

        @Test func `a change whose team has no key any more is counted as lost`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            // However late a busy machine reads the configuration.
            try waiting(stand, refusals: 2)
            // The other team is the only one now: its key must not speak for this change.
            try stand.reload([Self.other])
            try stand.await("device_updates_pending", 0)
            #expect(stand.apple.bits(of: "phone") == nil)
            let page = try stand.admin.send("GET", "/metrics").text
            #expect(page.contains("portcullis_device_updates_total{outcome=\"failed\"} 1\n"))
            #expect(page.contains("portcullis_device_updates_total{outcome=\"kept\"} 0\n"))
            #expect(page.contains("portcullis_device_updates_total{outcome=\"dropped\"} 0\n"))
        }
    }
}
