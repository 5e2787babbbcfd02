import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// An origin takes a request on a reused connection and ends it without an answer: it may have
    /// executed the request, or not.
    @Suite struct Repetitions {
        private static let rules = """
            - id: items
              match: { path: /items }
              mode: enforce
              sign: [method, target]
              challenge: none
            """

        @Test(arguments: [("DELETE", 502, 1), ("PUT", 502, 1), ("GET", 200, 2)])
        func `what was verified runs once, unless its method changes nothing`(
            method: String,
            status: Int,
            count: Int
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let client = try scenario.serve().client()
            // Leaves a connection in the pool of the client's event loop.
            try expectEqual(client.send("GET", "/open").status, 200)
            origin.leaveUnanswered("/items")
            let request = SoftwareKey.Request(method: method, target: "/items", content: [])
            let proof = key.proof(of: request, signing: .lines([.method, .target], headers: []))
            try expectEqual(client.send(request, proof).status, status)
            expectEqual(origin.seen.filter { $0.target == "/items" }.count, count)
        }

        @Test func `what nobody verified is repeated where its method allows it`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules)
            let client = try scenario.serve().client()
            try expectEqual(client.send("GET", "/open").status, 200)
            origin.leaveUnanswered("/other")
            try expectEqual(client.send("DELETE", "/other").status, 200)
            expectEqual(origin.seen.filter { $0.target == "/other" }.count, 2)
        }
    }
}
