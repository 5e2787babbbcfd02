import AppAttest
import AppleStandIn
import Cryptography
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import OutboundCalls
import Parties
import SoftwareAuthenticator
import Synchronization
import TestSupport
import Testing

/// What becomes of calls to Apple, by a stand-in for it.
extension Scenarios {
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct Apple {
        @Test(
            arguments: [200, 304, 400, 401, 403, 404, 405, 429, 500, 503],
            [AppleService.receipts, .queryBits]
        )
        func `each status reaches the asker and the metrics`(
            _ status: Int,
            _ service: AppleService
        ) async throws {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.always(service, .status(status, body: status == 304 ? "" : "said"))
            let reply = await stand.reply(service)
            let body = status == 304 ? [] : Array("said".utf8)
            expectEqual(reply, .answered(status: status, retryAfter: nil, body: body))
            expectEqual(stand.apple.calls.count, status == 401 ? 2 : 1)
            let labels =
                #"service="\#(service.rawValue)",environment="production",status="\#(status)""#
            #expect(try stand.metrics().contains("apple_calls_total{\(labels)} 1\n"))
            let apple = try stand.status()["apple"] as? [String: Any]
            let calls = try #require(apple?["calls"] as? [[String: Any]])
            expectEqual(calls.map { $0["status"] as? String }, [String(status)])
            expectEqual((apple?["hosts"] as? [[String: Any]])?.count, 1)
        }

        @Test(arguments: [
            (StandInPlay.garbage, CallFailure.garbled), (.cut, .broken),
            (.long(bytes: 300_000), .answerTooLong), (.hang, .timeout),
        ])
        func `an answer that is none is a fault with a name`(
            _ play: StandInPlay,
            _ fault: CallFailure
        ) async throws {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.always(.receipts, play)
            let timeout = Duration.seconds(play == .hang ? 3 : 30)
            await expectEqual(stand.reply(.receipts, timeout: timeout), .failed(fault))
            #expect(try stand.metrics().contains(#"status="\#(fault.rawValue)"} 1"#))
        }

        @Test func `a stand-in that is not trusted gets no token`() async throws {
            let stand = try AppleStand(trusts: false)
            defer { stand.end() }
            await expectEqual(stand.reply(.receipts), .failed(.tls))
            expectEqual(stand.apple.calls.count, 0)
        }

        @Test func `many calls carry one token, and an hour later another`() async throws {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", true, false)
            for _ in 0..<20 { #expect(await stand.query("phone").isGood) }
            expectEqual(stand.apple.calls.tokens.count, 1)
            stand.step(minutes: 49)
            #expect(await stand.query("phone").isGood)
            expectEqual(stand.apple.calls.tokens.count, 1)
            stand.step(minutes: 2)
            for _ in 0..<20 { #expect(await stand.query("phone").isGood) }
            expectEqual(stand.apple.calls.tokens.count, 2)
            #expect(stand.apple.calls.statuses.allSatisfy { $0 == 200 })
        }

        @Test func `a clock that was wrong and is set back costs no call`() async throws {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", true, false)
            #expect(await stand.query("phone").isGood)
            stand.step(minutes: -600)
            #expect(await stand.query("phone").isGood)
            expectEqual(stand.apple.calls.statuses, [200, 200])
        }

        @Test func `a token that Apple refuses is replaced once, and the call is made again`()
            async throws
        {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", true, false)
            #expect(await stand.query("phone").isGood)
            stand.apple.refuseTokensSoFar()
            #expect(await stand.query("phone").isGood)
            expectEqual(stand.apple.calls.statuses, [200, 401, 200])
            expectEqual(stand.apple.calls.tokens.count, 2)
        }

        @Test func `a team that Apple does not know gets its 401`() async throws {
            let stand = try AppleStand(knowsTeam: false)
            defer { stand.end() }
            await expectEqual(stand.query("phone").status, 401)
            expectEqual(stand.apple.calls.statuses, [401, 401])
        }

        @Test func `tokens of receipts stand behind Bearer where the configuration says so`()
            async throws
        {
            for isWritten in [false, true] {
                let stand = try AppleStand(more: "authorization: \(isWritten ? "bearer" : "plain")")
                defer { stand.end() }
                // The stand-in refuses both the token alone and the receipt: which one says what.
                for isWanted in [false, true] {
                    stand.apple.wantBearerOfReceipts(isWanted)
                    let status = await stand.exchange([0]).status
                    expectEqual(status, isWanted == isWritten ? 400 : 401)
                }
            }
        }

        @Test func `development has hosts of its own, and a wrong one is answered 400`()
            async throws
        {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", true, false)
            let token = StandInServer.deviceToken("phone", .development)
            #expect(await stand.query(token: token, .development).isGood)
            await expectEqual(stand.query(token: token, .production).status, 400)
            let hosts = stand.apple.calls.all.map(\.host.environment)
            expectEqual(hosts, [.development, .production])
        }

        @Test func `receipts are exchanged as Apple does it, and wrong ones on demand`()
            async throws
        {
            let stand = try AppleStand()
            defer { stand.end() }
            let key = Scenario.device.makeKey()
            let hash = SHA256.digest(of: [1]).array
            let first = key.receipt(.attest, clientDataHash: hash, at: stand.now)
            await expectEqual(stand.exchange(first).status, 404)
            stand.apple.add(key, riskMetric: 7)
            let second = try await stand.exchanged(first)
            expectEqual(second.fields.kind, .receipt)
            expectEqual(second.fields.riskMetric, 7)
            expectEqual(second.fields.certificate.p256PublicKey, key.publicKey)
            // Field 19: a day after it was made.
            await expectEqual(stand.exchange(second.bytes).status, 304)
            stand.step(minutes: 24 * 60 + 1)
            try await expectEqual(stand.exchanged(second.bytes).fields.riskMetric, 7)
            // The key is one of production.
            await expectEqual(stand.exchange(first, .production).status, 200)
            await expectEqual(stand.exchange(first, .development).status, 400)
            await expectEqual(stand.exchange([0], .production).status, 400)

            stand.apple.next(.receipts, .receipt(.otherKey), .receipt(.otherApp))
            let other = try await stand.exchanged(first)
            #expect(other.fields.certificate.p256PublicKey != key.publicKey)
            #expect(try await stand.exchanged(first).fields.appID != Scenario.appID)
            stand.apple.next(.receipts, .receipt(age: 91 * 86_400), .receiptOfAttestation)
            let expired = try await stand.exchanged(first).fields.expirationTime
            #expect(try #require(expired) < stand.now)
            try await expectEqual(stand.exchanged(first).fields.kind, .attest)
            stand.apple.next(.receipts, .receiptAsSent)
            try await expectEqual(stand.exchanged(first).bytes, first)
            stand.apple.forget(key)
            await expectEqual(stand.exchange(first).status, 404)
        }

        @Test func `bits are kept for a device, and calls with something wrong in them refused`()
            async throws
        {
            let stand = try AppleStand()
            defer { stand.end() }
            let never = await stand.query("phone")
            expectEqual(never.text, "Failed to find bit state")
            expectEqual(never.status, 200)
            let token = StandInServer.deviceToken("phone")
            let good =
                #""device_token":"\#(token)","transaction_id":"1","#
                + #""timestamp":\#(stand.milliseconds)"#
            let set = #"{\#(good),"bit0":true,"bit1":false}"#
            await expectEqual(stand.post(.updateBits, set).status, 200)
            expectEqual(stand.apple.bits(of: "phone")?.bit0, true)
            await expectEqual(
                stand.query("phone").text?.hasPrefix(#"{"bit0":true,"bit1":false,"#),
                true
            )
            await expectEqual(stand.post(.validateToken, "{\(good)}").status, 200)
            for wrong in [
                "", "{}", #"{"device_token":"AAAA"}"#, "{\(good)}",
                set.replacing(String(stand.milliseconds), with: String(stand.milliseconds / 1_000)),
                set.replacing(#""transaction_id":"1""#, with: #""transaction_id":"""#),
            ] {
                await expectEqual(stand.post(.updateBits, wrong).status, 400, "\(wrong)")
            }
        }

        @Test func `a host that fails is left alone, then tried with one call`() async throws {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.always(.queryBits, .status(500))
            for _ in 0..<5 { await expectEqual(stand.query("phone").status, 500) }
            for _ in 0..<50 { await expectEqual(stand.query("phone"), .unsent(.breakerOpen)) }
            expectEqual(stand.apple.calls.count, 5)
            let open =
                #"apple_breaker{service="device-check",environment="production",state="open"} 1"#
            #expect(try stand.metrics().contains(open))
            // The other service goes on.
            stand.apple.always(.receipts, .status(200))
            await expectEqual(stand.reply(.receipts).status, 200)
            // Calls are refused for two seconds at most; then one goes through and lets all in.
            stand.apple.always(.queryBits, .status(200))
            var reply = CallReply.unsent(.breakerOpen)
            await eventually {
                reply = await stand.query("phone")
                return reply != .unsent(.breakerOpen)
            }
            expectEqual(reply.status, 200)
            for _ in 0..<10 { await expectEqual(stand.query("phone").status, 200) }
            expectEqual(stand.apple.calls.of(.queryBits).count, 16)
        }

        @Test func `while Apple hangs, clients are served as if nothing was`() throws {
            let stand = try AppleStand(concurrent: 8, loops: 1)
            defer { stand.end() }
            for service in AppleService.allCases { stand.apple.always(service, .hang) }
            let replies = Mutex<[CallReply]>([])
            for _ in 0..<100 {
                for service in [AppleService.receipts, .queryBits] {
                    stand.calling.send(AppleStand.call(service, [1], .seconds(120))) { reply in
                        replies.withLock { $0.append(reply) }
                    }
                }
            }
            #expect(stand.apple.wait { $0.count == 16 })
            let client = HTTPClient(port: stand.port)
            for _ in 0..<100 { try expectEqual(client.send("GET", "/x").status, 200) }
            // All the time each call was waited for, or waited for its turn.
            expectEqual(replies.withLock { $0 }, [])
            expectEqual(stand.apple.calls.count, 16)
            let metrics = try stand.metrics()
            for service in ["receipts", "device-check"] {
                let labels = #"{service="\#(service)",environment="production"}"#
                #expect(metrics.contains("apple_calls_under_way\(labels) 8\n"))
                #expect(metrics.contains("apple_calls_waiting\(labels) 92\n"))
            }
            // The end does not wait for Apple either, and tells everybody.
            expectEqual(stand.stop(), 0)
            let ends = replies.withLock { $0 }
            expectEqual(ends.count, 200)
            expectEqual(ends.count { $0 == .failed(.stopping) }, 16)
            expectEqual(ends.count { $0 == .unsent(.stopping) }, 184)
        }

        @Test func `a reload takes another key, and a key that is unreadable stops nothing`()
            async throws
        {
            let stand = try AppleStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", true, false)
            #expect(await stand.query("phone").isGood)
            let next = StandInTeam(keyID: "NEXTKEY123")
            stand.apple.add(next)
            try stand.configure(team: next)
            try stand.reload(until: 2)
            stand.apple.refuseTokensSoFar()
            #expect(await stand.query("phone").isGood)
            // No call was spent on the key from before.
            expectEqual(stand.apple.calls.statuses, [200, 200])
            try stand.scenario.write("key.p8", "no key")
            try stand.reloadRefused()
            #expect(await stand.query("phone").isGood)
        }
    }
}
