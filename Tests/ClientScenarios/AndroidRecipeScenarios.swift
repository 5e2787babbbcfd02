import Expectations
import Foundation
import LoopbackKit
import Testing

extension ClientScenarios {
    /// What apps write around the client for Android.
    @Suite(.enabled(if: AndroidRecipes.arePossible)) struct AndroidRecipe {
        private func sent(_ what: String, before gateway: AndroidGateway) throws -> String {
            let record = FileManager.default.temporaryDirectory
                .appending(path: "portcullis-recipe-\(UUID().uuidString)")
            let (makers, address) = (gateway.makers, "http://\(gateway.address)")
            return try AndroidRecipes.run([makers, address, AndroidApp.package, record.path, what])
        }

        @Test
        func `OkHttp's interceptor learns what a route signs, and signs again what is refused`()
            throws
        {
            let gateway = try AndroidGateway()
            defer { gateway.stop() }
            gateway.rule(.init(headers: ["content-type", "host"]))
            try expectEqual(sent("okhttp-get", before: gateway), "200 ok")
            // Without a proof, then with one.
            expectEqual(gateway.requests("page=2").count, 2)
            gateway.refuse("/v1/orders", .init(reason: "challenge-unknown", next: "sign-again"))
            try expectEqual(sent("okhttp-post", before: gateway), "200 ok")
            let bodies = gateway.requests("/v1/orders").map(\.body)
            expectEqual(bodies, [Array("lamp".utf8), Array("lamp".utf8)])
        }

        @Test func `OkHttp's interceptor says that an order may have run`() throws {
            let gateway = try AndroidGateway()
            defer { gateway.stop() }
            gateway.refuse("/v1/orders", .init(reason: "assertion-missing", next: "sign-again"))
            gateway.refuse("/v1/orders", .init(reason: "counter-replayed", next: "sign-again"))
            try expectEqual(sent("okhttp-post", before: gateway), "may have run")
            expectEqual(gateway.requests("/v1/orders").count, 2)
        }

        @Test func `a coroutine is resumed with what came`() throws {
            let gateway = try AndroidGateway()
            defer { gateway.stop() }
            try expectEqual(sent("suspend", before: gateway), "null ok")
        }

        @Test func `Java reaches all of the client`() throws {
            let gateway = try AndroidGateway()
            defer { gateway.stop() }
            gateway.rule(.init(headers: ["idempotency-key"]))
            try expectEqual(sent("java", before: gateway), "ready, 200 ok, true, true")
        }
    }
}
