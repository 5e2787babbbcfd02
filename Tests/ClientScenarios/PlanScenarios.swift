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
    /// An app that gets the plan from the gateway.
    @Suite struct Plans {
        private static let rules = """
            - { id: partial, match: { path: /partial/** }, mode: enforce, sign: [method, target] }
            - { id: whole, match: { path: /whole/** }, mode: enforce, sign: content }
            """
        private static let plan = ClientStand.endpoints + "/plan"

        private func app(_ stand: ClientStand, _ file: URL? = nil) throws -> PortcullisSession {
            try stand.app {
                $0.defaultRequirement = nil
                $0.fetchesPlan = true
                $0.limits.planWait = .seconds(30)
                if let file { $0.routeMemory = .file(file) }
            }
        }

        @Test func `an app without a plan signs right at its first try, and after a restart`()
            async throws
        {
            let stand = try ClientStand(rules: Self.rules, more: "plan: on")
            defer { stand.end() }
            let file = stand.folder.appending(path: "routes")
            let first = try app(stand, file)
            for path in ["partial", "whole"] {
                let answer = try await first.send(stand.request("POST", "/\(path)/1", "a"))
                #expect((answer.statusCode, answer.attempts) == (200, 1))
            }
            expectEqual(stand.statuses(Self.plan), [200])
            await first.close()
            // The next process has it from its file, and is told that it still holds.
            let second = try app(stand, file)
            let answer = try await second.send(stand.request("POST", "/whole/2", "b"))
            #expect((answer.statusCode, answer.attempts) == (200, 1))
            #expect(eventually { stand.statuses(Self.plan) == [200, 304] })
            expectEqual(stand.verdicts, ["pass", "pass", "pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a gateway that serves no plan costs an app nothing but the question`()
            async throws
        {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            let app = try app(stand)
            let first = try await app.send(stand.request("POST", "/partial/1", "a"))
            #expect((first.statusCode, first.attempts) == (200, 2))
            let second = try await app.send(stand.request("POST", "/partial/2", "a"))
            #expect((second.statusCode, second.attempts) == (200, 1))
            expectEqual(stand.statuses(Self.plan), [404])
        }
    }
}
