import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// What the gateway does for its clients, seen from one.
    @Suite struct Gateways {
        /// The rate was applied at `…/keys`: six devices asked Apple 21 times until one was in.
        @Test func `a device that is over the enrolment rate asks Apple nothing`() async throws {
            // A rule that enforces would have the request wait until the device is admitted.
            let stand = try ClientStand(
                rules: "- { id: all, match: { path: /orders/** }, mode: observe }",
                more: "enrolment: { rate: 1/s, burst: 1 }"
            )
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            try await expectEqual(stand.app().send(request).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            // Five more installs on the same device.
            for count in 2...6 {
                stand.store = MemoryEnrolmentStore()
                let answer = try await stand.app().send(request)
                guard case .none(.enrolmentHeld(let hold)) = answer.proof else {
                    // A second has passed meanwhile: this one was admitted.
                    continue
                }
                expectEqual(hold.cause, .throttled)
                #expect(hold.until > stand.clock.now)
                expectEqual(stand.service.counts.keysMade, count)
            }
            let admitted = stand.transport.exchanges(ClientStand.keys).count
            expectEqual(stand.service.counts.attestationsRequested, admitted)
            #expect(admitted < 6)
        }

        /// A challenge was put into responses marked `public`, so that caches gave it to many.
        @Test func `no challenge is in what shared caches keep, and requests go on without it`()
            async throws
        {
            let stand = try ClientStand { connection in
                while let request = try connection.nextRequest() {
                    let isPublic = request.target.hasSuffix("public")
                    try connection.answer(
                        200,
                        body: "ok",
                        fields: isPublic ? "Cache-Control: public, max-age=60\r\n" : "",
                        to: request
                    )
                }
            }
            defer { stand.end() }
            let app = try stand.app()
            for _ in 0..<8 {
                let answer = try await app.send(stand.request("GET", "/orders/public"))
                expectEqual(answer.statusCode, 200)
                expectEqual(answer.attempts, 1)
                expectEqual(answer.response.value(forHTTPHeaderField: "App-Attest-Challenge"), nil)
            }
            let answer = try await app.send(stand.request("GET", "/orders/1"))
            #expect(answer.response.value(forHTTPHeaderField: "App-Attest-Challenge") != nil)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }
    }
}
