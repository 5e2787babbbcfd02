import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import PortcullisClientTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// What devices are, and how they fail to sign.
    @Suite struct Devices {
        /// With `platform: macos`, iPhones of the same App ID were refused.
        @Test(arguments: [SoftwareAttestationService.Device.iPhone, .mac])
        func `an iPhone and a Mac enrol for one App ID`(
            device: SoftwareAttestationService.Device
        ) async throws {
            let stand = try ClientStand(app: ", platform: macos", device: device)
            defer { stand.end() }
            let app = try stand.app()
            try await expectEqual(app.send(stand.request("GET", "/orders/1")).statusCode, 200)
            expectEqual(stand.verdicts, ["pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// The receipts of software were empty.
        @Test func `a device made of software enrols for an app that requires a receipt`()
            async throws
        {
            let stand = try ClientStand(app: ", receipt: required")
            defer { stand.end() }
            let app = try stand.app()
            try await expectEqual(app.send(stand.request("GET", "/orders/1")).statusCode, 200)
            expectEqual(stand.statuses(ClientStand.keys), [201])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test(arguments: ["strict", "{ window: 64 }"])
        func `a service that never signs holds a request as long as it may, and costs no key`(
            counter: String
        ) async throws {
            let stand = try ClientStand(
                rules: """
                    - { id: a, match: { path: /orders/** }, mode: enforce, counter: \(counter) }
                    """
            )
            defer { stand.end() }
            let plan = try SigningPlan(json: stand.gateway.plan())
            let app = try stand.app { $0.plan = plan }
            let request = try stand.request("GET", "/orders/1")
            try await expectEqual(app.send(request).statusCode, 200)
            let latch = Latch()
            stand.service.next(.generateAssertion, .wait(latch))
            async let held = app.send(request)
            await latch.awaitArrivals(1)
            stand.clock.advance(by: 10.1)
            let answer = try await held
            expectEqual(answer.proof, .none(.serviceFailed(.serverUnavailable)))
            #expect((answer.statusCode, answer.attempts) == (403, 1))
            // Others go on, also when it signs at last.
            try await expectEqual(app.send(request).statusCode, 200)
            latch.open()
            try await expectEqual(app.send(request).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// A preflight was answered 401, so that no page could send a request at all.
        @Test func `a page's preflight passes an enforcing rule, and its request is proven`()
            async throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: orders, match: { path: /orders/** }, mode: enforce, preflight: forward }
                    """
            ) { connection in
                while let request = try connection.nextRequest() {
                    let fields = "Access-Control-Allow-Origin: https://shop.example\r\n"
                    try connection.answer(204, fields: fields, to: request)
                }
            }
            defer { stand.end() }
            let app = try stand.app()
            var preflight = try stand.request("OPTIONS", "/orders/1")
            var order = try stand.request("POST", "/orders/1", "lamp")
            for (name, value) in [
                ("Origin", "https://shop.example"), ("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", "app-attest-assertion"),
            ] { preflight.setValue(value, forHTTPHeaderField: name) }
            order.setValue("https://shop.example", forHTTPHeaderField: "Origin")
            let plain = URLSession(configuration: .ephemeral)
            defer { plain.finishTasksAndInvalidate() }
            let allowed = try await plain.data(for: preflight).1 as? HTTPURLResponse
            expectEqual(allowed?.statusCode, 204)
            let name = "Access-Control-Allow-Origin"
            expectEqual(allowed?.value(forHTTPHeaderField: name), "https://shop.example")
            // It asks for no key.
            expectEqual(stand.cost, Cost(keys: 0, attestations: 0))
            try await expectEqual(app.send(order).statusCode, 204)
            expectEqual(stand.told("Reason").first, "preflight")
            expectEqual(stand.verdicts, ["refuse", "pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }
    }
}
