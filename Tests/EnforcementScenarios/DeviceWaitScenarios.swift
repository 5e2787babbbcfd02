import AppleStandIn
import DeviceKey
import Expectations
import Foundation
import LoopbackKit
import Parties
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Requests that wait for Apple.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct DeviceWaits {
        /// Sends a request and does not read the answer.
        private func begin(
            _ stand: DeviceStand,
            _ path: String,
            content: String = "order"
        ) throws -> Wire {
            let (request, fields) = stand.signed(path, token: DeviceStand.token(), content: content)
            let head =
                HTTPClient.head("POST", path, fields)
                + "Content-Length: \(request.content.count)\r\n\r\n"
            let wire = try Wire(port: stand.port, from: nil)
            try wire.send(Array(head.utf8) + request.content)
            return wire
        }

        /// The one event loop serves everybody else while one request waits.
        @Test(arguments: ["/v1/kind", "/v1/upload"])
        func `the origin sees nothing while Apple is asked, and other requests go on`(
            path: String
        ) throws {
            let stand = try DeviceStand(loops: 1)
            defer { stand.end() }
            stand.apple.next(.queryBits, .slow(milliseconds: 2_000))
            let content = String(repeating: "x", count: 200_000)
            let wire = try begin(stand, path, content: content)
            #expect(stand.apple.wait { $0.of(.queryBits).count == 1 })
            for _ in 0..<20 {
                try expectEqual(stand.client.send("GET", "/v1/open").status, 200)
            }
            #expect(stand.shop.seen.isEmpty && stand.shop.connectionCount == 0)
            let answer = try wire.readFinalResponse(to: "POST")
            expectEqual(answer.status, 200)
            let seen = try stand.shop.seen(1)[0]
            #expect(seen.isComplete && seen.count == content.utf8.count)
        }

        /// How long verified requests take, one after the other: sorted.
        private func times(_ stand: DeviceStand, _ count: Int) throws -> [Duration] {
            try (0..<count).map { _ in
                let begin = ContinuousClock.now
                let status = try stand.send("/v1/plain", token: nil).status
                expectEqual(status, 200)
                return ContinuousClock.now - begin
            }.sorted()
        }

        private func row(_ name: String, _ times: [Duration]) -> String {
            let columns = [times.count / 2, times.count * 99 / 100, times.count - 1].map { place in
                let (seconds, attoseconds) = times[place].components
                let micros = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
                let text = "\(micros / 1_000).\(micros / 100 % 10) ms"
                return String(repeating: " ", count: max(12 - text.count, 1)) + text
            }
            return name + columns.joined() + "\n"
        }

        @Test func `while renewals and device calls hang, p99 of verified requests stays`() throws {
            let stand = try DeviceStand(loops: 1)
            defer { stand.end() }
            var keys: [SoftwareKey] = []
            for _ in 0..<8 {
                keys.append(stand.key)
                try stand.reinstall()
            }
            _ = try times(stand, 100)
            let before = try times(stand, 200)
            stand.apple.always(.receipts, .hang)
            stand.apple.always(.queryBits, .hang)
            let config = ["receipts", "renew", "--config", stand.scenario.path("portcullis.yaml")]
            try expectEqual(stand.scenario.portcullis(config + keys.map(\.keyID.base64)).status, 0)
            #expect(stand.apple.wait { $0.of(.receipts).count == 8 })
            // Eight are under way for each host, and the other clients wait for theirs.
            var others: [Wire] = []
            let measured = stand.key
            for key in keys {
                stand.key = key
                for _ in 0..<3 { others.append(try begin(stand, "/v1/trial")) }
            }
            stand.key = measured
            #expect(stand.apple.wait { $0.of(.queryBits).count >= 8 })
            let during = try times(stand, 200)
            expectEqual(others.count, 24)
            print(
                "verified requests          p50         p99     slowest\n"
                    + row("Apple answers   ", before) + row("Apple hangs     ", during)
            )
            // A call to Apple hangs for 5 s. A machine with other work to do may be slow as well,
            // so the bounds are far from what is printed, and below what a wait would make.
            let (usual, hanging) = (before[198], during[198])
            #expect(hanging <= usual * 10 + .seconds(1))
            #expect(during[199] < .seconds(4))
        }

        @Test func `Apple's silence ends with the rule's time`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.always(.queryBits, .hang)
            let before = Date()
            let answer = try stand.send("/v1/hasty")
            #expect(answer.status == 503 && answer.reason == "device-check-unavailable")
            // The rule says 300 ms, and the call's own time would be 5 s.
            #expect(Date().timeIntervalSince(before) < 4)
        }

        @Test func `a client that goes while Apple is asked leaves nothing behind`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.next(.queryBits, .slow(milliseconds: 500))
            var wire: Wire? = try begin(stand, "/v1/kind")
            #expect(stand.apple.wait { $0.of(.queryBits).count == 1 })
            #expect(wire != nil)
            wire = nil
            try expectEqual(stand.send("/v1/kind").status, 200)
            try expectEqual(stand.shop.seen(1).count, 1)
            expectEqual(stand.stop(), 0)
        }

        @Test func `a request that waits when the gateway is told to stop gets its answer`() throws
        {
            let stand = try DeviceStand(drain: "30s")
            defer { stand.end() }
            stand.apple.next(.queryBits, .slow(milliseconds: 1_000))
            let wire = try begin(stand, "/v1/kind")
            #expect(stand.apple.wait { $0.of(.queryBits).count == 1 })
            stand.beginStop()
            try expectEqual(wire.readFinalResponse(to: "POST").status, 200)
            // Otherwise the gateway lingers, for what the client may still send.
            wire.close()
            expectEqual(stand.stop(), 0)
        }
    }

    /// Bits that origins have Apple keep.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct DeviceUpdates {
        @Test func `the other bit stays as it was`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", false, true)
            try expectEqual(stand.send("/v1/trial").status, 200)
            #expect(stand.awaitBits(true, true))
        }

        @Test func `a change that fails is tried again`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.next(.updateBits, .status(500), .proper)
            try expectEqual(stand.send("/v1/trial").status, 200)
            #expect(stand.awaitBits(true, false))
            expectEqual(stand.apple.calls.of(.updateBits).count, 2)
            try stand.await("device_updates_total", 1)
        }

        @Test func `a response does not wait for a change, and the end of the gateway does`() throws
        {
            let stand = try DeviceStand(drain: "30s")
            defer { stand.end() }
            stand.apple.next(.updateBits, .slow(milliseconds: 3_000))
            try expectEqual(stand.send("/v1/trial").status, 200)
            try expectEqual(stand.metrics()["device_updates_pending"], 1)
            expectEqual(stand.stop(), 0)
            expectEqual(stand.apple.bits(of: "phone").map { $0 == (true, false) }, true)
        }

        @Test(arguments: [
            "1", "1,1,1", "true,-", "1,-\r\nApp-Attest-Device-Bits: 0,-", "bit0=0, bit1=0",
        ])
        func `a value that is none changes nothing, and no client sees it`(value: String) throws {
            let stand = try DeviceStand(bits: "App-Attest-Device-Bits: \(value)\r\n")
            defer { stand.end() }
            let answer = try stand.send("/v1/trial")
            expectEqual(answer.status, 200)
            #expect(answer.head.all("App-Attest-Device-Bits").isEmpty)
            try expectEqual(stand.metrics()["device_fields_ignored_total"], 1)
            #expect(stand.apple.calls.of(.updateBits).isEmpty)
        }

        @Test func `rules that ask for no device remove the fields, and ask Apple nothing`() throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            for path in ["/v1/plain", "/v1/open"] {
                let answer = try stand.send(path)
                expectEqual(answer.status, 200)
                #expect(answer.head.all("App-Attest-Device-Bits").isEmpty)
            }
            for seen in try stand.trials.seen(2) {
                #expect(seen.head.all("App-Attest-Device-Token").isEmpty)
                #expect(seen.head.all("App-Attest-Device-Bits").isEmpty)
            }
            expectEqual(stand.apple.calls.count, 0)
            try expectEqual(stand.metrics()["device_fields_ignored_total"], 2)
        }
    }
}
