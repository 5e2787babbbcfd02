import AppleServices
import AppleStandIn
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Requests that wait for Apple.
    @Suite(.enabled(if: Scenario.isPossible)) struct DeviceWaits {
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

        /// The one lane serves everybody else while one request waits.
        @Test(arguments: ["/v1/kind", "/v1/upload"])
        func `the origin sees nothing while Apple is asked, and other requests go on`(
            path: String
        ) throws {
            let stand = try DeviceStand(lanes: 1)
            defer { stand.end() }
            stand.apple.next(.queryBits, .slow(milliseconds: 2_000))
            let content = String(repeating: "x", count: 200_000)
            let wire = try begin(stand, path, content: content)
            #expect(stand.apple.wait { $0.of(.queryBits).count == 1 })
            for _ in 0..<50 {
                #expect(try stand.client.send("GET", "/v1/open").status == 200)
            }
            #expect(stand.shop.seen.isEmpty && stand.shop.connectionCount == 0)
            let answer = try wire.readFinalResponse(to: "POST")
            #expect(answer.status == 200)
            let seen = try stand.shop.seen(1)[0]
            #expect(seen.isComplete && seen.count == content.utf8.count)
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
            #expect(try stand.send("/v1/kind").status == 200)
            #expect(try stand.shop.seen(1).count == 1)
            #expect(stand.stop() == 0)
        }

        @Test func `a request that waits when the gateway is told to stop gets its answer`() throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.next(.queryBits, .slow(milliseconds: 1_000))
            let wire = try begin(stand, "/v1/kind")
            #expect(stand.apple.wait { $0.of(.queryBits).count == 1 })
            stand.beginStop()
            #expect(try wire.readFinalResponse(to: "POST").status == 200)
            #expect(stand.stop() == 0)
        }
    }

    /// Bits that origins have Apple keep.
    @Suite(.enabled(if: Scenario.isPossible)) struct DeviceUpdates {
        @Test func `the other bit stays as it was`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.setBits(of: "phone", false, true)
            #expect(try stand.send("/v1/trial").status == 200)
            #expect(stand.awaitBits(true, true))
        }

        @Test func `a change that fails is tried again`() throws {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.next(.updateBits, .status(500), .proper)
            #expect(try stand.send("/v1/trial").status == 200)
            #expect(stand.awaitBits(true, false))
            #expect(stand.apple.calls.of(.updateBits).count == 2)
            try stand.await("device_updates_total", 1)
        }

        @Test func `a response does not wait for a change, and the end of the gateway does`() throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            stand.apple.next(.updateBits, .slow(milliseconds: 3_000))
            #expect(try stand.send("/v1/trial").status == 200)
            #expect(try stand.metrics()["device_updates_pending"] == 1)
            #expect(stand.stop() == 0)
            #expect(stand.apple.bits(of: "phone").map { $0 == (true, false) } == true)
        }

        @Test(arguments: [
            "1", "1,1,1", "true,-", "1,-\r\nApp-Attest-Device-Bits: 0,-", "bit0=0, bit1=0",
        ])
        func `a value that is none changes nothing, and no client sees it`(value: String) throws {
            let stand = try DeviceStand(bits: "App-Attest-Device-Bits: \(value)\r\n")
            defer { stand.end() }
            let answer = try stand.send("/v1/trial")
            #expect(answer.status == 200)
            #expect(answer.head.all("App-Attest-Device-Bits").isEmpty)
            #expect(try stand.metrics()["device_fields_ignored_total"] == 1)
            #expect(stand.apple.calls.of(.updateBits).isEmpty)
        }

        @Test func `rules that ask for no device remove the fields, and ask Apple nothing`() throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            for path in ["/v1/plain", "/v1/open"] {
                let answer = try stand.send(path)
                #expect(answer.status == 200)
                #expect(answer.head.all("App-Attest-Device-Bits").isEmpty)
            }
            for seen in try stand.trials.seen(2) {
                #expect(seen.head.all("App-Attest-Device-Token").isEmpty)
                #expect(seen.head.all("App-Attest-Device-Bits").isEmpty)
            }
            #expect(stand.apple.calls.count == 0)
            #expect(try stand.metrics()["device_fields_ignored_total"] == 2)
        }
    }
}
