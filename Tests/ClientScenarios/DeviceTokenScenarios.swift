import AppleStandIn
import ClientKit
import Expectations
import Foundation
import LoopbackKit
import Parties
import PortcullisClient
import PortcullisClientTesting
import Testing

extension ClientScenarios {
    /// Rules that ask Apple about the device, before an app that has no code for it.
    @Suite struct DeviceTokens {
        @Test func `an app without code for it has its trial, and none after a reinstall`()
            async throws
        {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let request = try stand.stand.request("POST", "/trial", "please")
            let first = try await stand.app().send(request)
            #expect((first.statusCode, first.attempts, first.deviceToken) == (200, 1, .sent))
            expectEqual(stand.stand.told("Device-Bits"), ["bit0=0, bit1=0"])
            expectEqual(stand.stand.told("Device-Token"), ["none"])
            #expect(stand.awaitBit0())

            // The app is deleted and installed anew: another key, the same device.
            stand.stand.store = MemoryEnrolmentStore()
            let second = try await stand.app().send(request)
            #expect((second.statusCode, second.attempts, second.deviceToken) == (403, 1, .sent))
            expectEqual(second.refusal, GatewayRefusal(reason: "device-flagged", next: .none))
            expectEqual(stand.stand.origin.requests.count, 1)
            expectEqual(stand.stand.cost, Cost(keys: 2, attestations: 2))

            let tablet = SoftwareDeviceTokenService(device: "tablet")
            try await expectEqual(stand.app(tablet).send(request).statusCode, 200)
        }

        @Test(arguments: ["/trial", "/chat"])
        func `each request has a token of its own, with an assertion and in a session`(
            path: String
        ) async throws {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let tokens = ScriptedDeviceTokenService(device: "phone")
            let app = try stand.app(tokens)
            let request = try stand.stand.request("POST", path, "please")
            var statuses: [Int] = []
            for _ in 0..<3 {
                let answer = try await app.send(request)
                statuses.append(answer.statusCode)
                if path == "/trial" { #expect(stand.awaitBit0()) }
            }
            expectEqual(statuses, path == "/trial" ? [200, 403, 403] : [200, 200, 200])
            expectEqual(Set(tokens.tokens).count, 3)
            #expect(stand.apple.calls.of(.queryBits).count >= 3)
        }

        @Test func `an app without a plan learns that a token is asked for`() async throws {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let app = try stand.app { $0.plan = nil }
            let request = try stand.stand.request("POST", "/trial", "please")
            let answer = try await app.send(request)
            #expect((answer.statusCode, answer.attempts, answer.deviceToken) == (200, 2, .sent))
        }

        @Test(arguments: ["/trial", "/watched"])
        func `an app whose plan is older than the rule learns it, before the rule enforces, too`(
            path: String
        ) async throws {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let app = try stand.app {
                $0.plan = nil
                $0.defaultRequirement = SigningRequirement()
            }
            let request = try stand.stand.request("POST", path, "please")
            let first = try await app.send(request)
            #expect((first.statusCode, first.attempts) == (200, path == "/trial" ? 2 : 1))
            if path == "/watched" {
                try await expectEqual(app.send(request).deviceToken, .sent)
                expectEqual(stand.stand.told("Reason").sorted(), ["device-token-missing", "none"])
            }
            expectEqual(stand.stand.verdicts.last, "pass")
        }

        @Test func `a device that makes no token gets the documented error`() async throws {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let tokens = ScriptedDeviceTokenService()
            tokens.always(.fail(.serverUnavailable))
            let app = try stand.app(tokens)
            let answer = try await app.send(stand.stand.request("POST", "/trial", "please"))
            #expect((answer.statusCode, answer.attempts) == (400, 1))
            let refusal = GatewayRefusal(reason: "device-token-missing", next: .fixClient)
            expectEqual(answer.refusal, refusal)
            expectEqual(answer.deviceToken, .failed(.serverUnavailable))
            #expect(stand.stand.origin.requests.isEmpty)
            expectEqual(stand.apple.calls.count, 0)
        }

        @Test func `a token that Apple does not take is refused, and not tried again`()
            async throws
        {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let tokens = ScriptedDeviceTokenService()
            tokens.always(.bring(Data([1, 2, 3])))
            let app = try stand.app(tokens)
            let answer = try await app.send(stand.stand.request("POST", "/trial", "please"))
            #expect((answer.statusCode, answer.attempts, answer.deviceToken) == (400, 1, .sent))
            expectEqual(answer.refusal?.reason, "device-token-malformed")
            expectEqual(tokens.calls, 1)
        }

        @Test func `a token of an earlier request is made anew as often as a request is sent`()
            async throws
        {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let tokens = ScriptedDeviceTokenService()
            tokens.always(.bring(SoftwareDeviceTokenService(device: "phone").generateToken()))
            let app = try stand.app(tokens)
            let request = try stand.stand.request("POST", "/chat", "please")
            try await expectEqual(app.send(request).statusCode, 200)
            let again = try await app.send(request)
            #expect((again.statusCode, again.attempts) == (400, 3))
            expectEqual(again.refusal?.reason, "device-token-used")
        }

        @Test func `while Apple tells nothing a request is sent later, with a new token`()
            async throws
        {
            let stand = try DeviceTokenStand()
            defer { stand.end() }
            let tokens = ScriptedDeviceTokenService()
            let app = try stand.app(tokens)
            stand.apple.next(.queryBits, .status(500))
            let request = try stand.stand.request("POST", "/trial", "please")
            let answer = try await app.send(request)
            #expect((answer.statusCode, answer.attempts) == (200, 2))
            expectEqual(Set(tokens.tokens).count, 2)
        }
    }
}
