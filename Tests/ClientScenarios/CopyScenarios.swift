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
    /// Something on the way sends a request twice, and the answer to the first is lost. What counts
    /// is how often the origin runs it.
    @Suite struct Copies {
        private static let rules = """
            \(ClientStand.ordersAndChat)
            - { id: seen, match: { path: /seen/** }, mode: enforce, counter: strict }
            """

        private static func request(
            _ stand: ClientStand,
            _ method: String,
            _ path: String,
            key: String?
        ) throws -> URLRequest {
            var request = try stand.request(method, path, method == "GET" ? nil : "{}")
            request.setValue(key, forHTTPHeaderField: "Idempotency-Key")
            return request
        }

        @Test(arguments: [
            ("POST", "/orders/1", nil as String?, false), ("POST", "/seen/1", nil, false),
            ("POST", "/chat/1", nil, false), ("PATCH", "/orders/1", nil, false),
            ("POST", "/orders/1", "8e03978e", true), ("POST", "/chat/1", "8e03978e", true),
            ("GET", "/orders/1", nil, true), ("PUT", "/orders/1", nil, true),
        ])
        func `a copied request runs again only where that is no second order`(
            method: String,
            path: String,
            key: String?,
            isRepeated: Bool
        ) async throws {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            let app = try stand.app {
                let accepts: Set<SigningRequirement.Kind> =
                    path.hasPrefix("/chat") ? [.assertion, .session] : [.assertion]
                let counter: SigningRequirement.Counter =
                    path.hasPrefix("/seen") ? .strict : .window(64)
                $0.defaultRequirement = SigningRequirement(counter: counter, accepts: accepts)
            }
            let request = try Self.request(stand, method, path, key: key)
            try await expectEqual(app.send(request).mayHaveRun, false)
            stand.transport.next(path, .sendTwice)
            let answer = try await app.send(request)
            expectEqual(answer.mayHaveRun, !isRepeated)
            expectEqual(answer.statusCode, isRepeated ? 200 : 401)
            expectEqual(answer.attempts, isRepeated ? 2 : 1)
            // The first request, the copied one, and once more where that is no harm.
            expectEqual(stand.verdicts, Array(repeating: "pass", count: isRepeated ? 3 : 2))
        }

        @Test(arguments: [(nil as String?, false), ("8e03978e", true)])
        func `a request that another sender has sent twice is signed again where it may run again`(
            key: String?,
            isRepeated: Bool
        ) async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let app = try stand.app()
            let plain = URLSession(configuration: .ephemeral)
            let request = try Self.request(stand, "POST", "/orders/1", key: key)
            let signed = try await app.sign(request)
            let admitted = try await plain.data(for: signed.request).1
            let first = try #require(admitted as? HTTPURLResponse)
            #expect((first.statusCode, app.mayHaveRun(signed, after: first)) == (200, false))
            let refused = try await plain.data(for: signed.request).1
            let copy = try #require(refused as? HTTPURLResponse)
            expectEqual(copy.statusCode, 401)
            expectEqual(app.mayHaveRun(signed, after: copy), !isRepeated)
            let again = try await app.signAgain(signed, after: copy)
            expectEqual(again != nil, isRepeated)
            expectEqual(stand.verdicts, ["pass"])
        }
    }
}
