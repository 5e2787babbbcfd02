import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// How an app comes to know what a route signs: from the plan, or from an answer.
    @Suite struct Lessons {
        private static let rules = """
            - { id: fields, match: { path: /fields/** }, mode: enforce,
                headers: [idempotency-key, content-type] }
            - { id: partial, match: { path: /partial/** }, mode: enforce, sign: [method, target] }
            - { id: quiet, match: { path: /quiet/** }, mode: enforce,
                challenge: none, sign: [method, target, body] }
            - { id: whole, match: { path: /whole/** }, mode: enforce, sign: content }
            - { id: named, match: { path: /named/** }, mode: enforce, sign: challenge }
            - { id: open, match: { path: /open/** }, mode: off }
            """
        private static let paths = ["fields", "partial", "quiet", "whole", "named", "open"]

        private func order(_ stand: ClientStand, _ path: String) throws -> URLRequest {
            var request = try stand.request("POST", "/\(path)/1", #"{"item":"lamp"}"#)
            request.setValue("8e03978e", forHTTPHeaderField: "Idempotency-Key")
            return request
        }

        private func isProven(_ proof: SentProof) -> Bool {
            guard case .assertion = proof else { return false }
            return true
        }

        /// `headers`, a partial `sign` and `challenge: none` gave 403 with the sample.
        @Test func `a route teaches what it signs by its first answer`() async throws {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            for path in Self.paths {
                try stand.startOver(isFrozen: false)
                let app = try stand.app { $0.defaultRequirement = nil }
                let first = try await app.send(order(stand, path))
                expectEqual(first.statusCode, 200, "\(path)")
                expectEqual(first.attempts, path == "open" ? 1 : 2, "\(path)")
                let second = try await app.send(order(stand, path))
                expectEqual(second.statusCode, 200, "\(path)")
                expectEqual(second.attempts, 1, "\(path)")
                let verdict = path == "open" ? "none" : "pass"
                expectEqual(stand.verdicts, [verdict, verdict], "\(path)")
                let cost = path == "open" ? 0 : 1
                expectEqual(stand.cost, Cost(keys: cost, attestations: cost), "\(path)")
            }
        }

        @Test func `a plan that portcullis wrote saves the first refusal`() async throws {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            let plan = try SigningPlan(json: stand.gateway.plan())
            for path in Self.paths {
                try stand.startOver(isFrozen: false)
                let app = try stand.app {
                    $0.defaultRequirement = nil
                    $0.plan = plan
                }
                let answer = try await app.send(order(stand, path))
                expectEqual(answer.statusCode, 200, "\(path)")
                expectEqual(answer.attempts, 1, "\(path)")
                expectEqual(stand.verdicts, [path == "open" ? "none" : "pass"], "\(path)")
            }
        }

        @Test func `a strict route that no plan names admits all requests of a crowd`() async throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: money, match: { path: /money/** }, mode: enforce, counter: strict }
                    """
            )
            defer { stand.end() }
            let app = try stand.app { $0.defaultRequirement = nil }
            let request = try stand.request("POST", "/money/1", "5")
            for tries in [2, 1] {
                let answers = try await app.sendAtOnce(40, request)
                #expect(answers.allSatisfy { $0.statusCode == 200 && $0.attempts <= tries })
            }
            expectEqual(stand.verdicts, Array(repeating: "pass", count: 80))
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// URLSession writes a Content-Type by itself behind the signature, so that a rule that
        /// signs the field refused such a request.
        @Test func `a Content-Type that URLSession adds by itself is signed`() async throws {
            let stand = try ClientStand(
                rules: """
                    - { id: typed, match: { path: /typed/** }, mode: enforce,
                        headers: [content-type] }
                    """
            )
            defer { stand.end() }
            let plan = try SigningPlan(json: stand.gateway.plan())
            let app = try stand.app { $0.plan = plan }
            let answer = try await app.send(stand.request("POST", "/typed/1", "a=1"))
            #expect((answer.statusCode, answer.attempts) == (200, 1))
            let type = stand.origin.requests.last?.head.value("Content-Type")
            expectEqual(type, "application/x-www-form-urlencoded")
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `an outdated plan is corrected by the gateway's answer`() async throws {
            let old = try ClientStand(
                rules: "- { id: a, match: { path: /** }, mode: enforce, sign: [method] }"
            )
            let plan = try SigningPlan(json: old.gateway.plan())
            old.end()
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            let app = try stand.app {
                $0.defaultRequirement = nil
                $0.plan = plan
            }
            let first = try await app.send(order(stand, "fields"))
            expectEqual(first.statusCode, 200)
            let second = try await app.send(order(stand, "fields"))
            expectEqual(second.statusCode, 200)
            expectEqual(second.attempts, 1)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        /// `observe` never told that a key was unknown, so all enrolled at once when it enforced.
        @Test func `where a rule observes, the app enrols before it enforces`() async throws {
            let stand = try ClientStand(
                rules: "- { id: all, match: { path: /orders/** }, mode: observe }"
            )
            defer { stand.end() }
            let app = try stand.app { $0.defaultRequirement = nil }
            let first = try await app.send(stand.request("GET", "/orders/1"))
            expectEqual(first.statusCode, 200)
            // No request waits for the key.
            let isEnrolled = try await eventually {
                try await isProven(app.send(stand.request("GET", "/orders/1")).proof)
            }
            #expect(isEnrolled)
            #expect(stand.verdicts.contains("refuse"))
            expectEqual(stand.verdicts.count { $0 == "pass" }, 1)
            try stand.gateway.restart(wipingStore: true)
            // The gateway says that the key is unknown; the app enrols another.
            _ = try await app.send(stand.request("GET", "/orders/1"))
            let isEnrolledAgain = try await eventually {
                try await isProven(app.send(stand.request("GET", "/orders/1")).proof)
            }
            #expect(isEnrolledAgain)
            expectEqual(stand.verdicts.count { $0 == "pass" }, 2)
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }
    }
}
