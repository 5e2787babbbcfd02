import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Requests with held content that an origin of HTTP/2 says it has not processed.
    @Suite struct RefusedStreams {
        private static let signing = SigningForm.lines([.method, .target, .body], headers: [])
        private static let rules = """
            - id: held
              match: { path: /v1/held }
              origin: calls
              mode: enforce
              sign: [method, target, body]
              body: { digest: held, limit: 1MiB, memory: 64KiB }
            """

        /// In memory, and in a file. As of a gRPC server that is replaced: GOAWAY.
        @Test(arguments: [2_000, 100_000])
        func `held content goes to another connection after a refusal`(count: Int) throws {
            let origin = try TestOrigin { connection in
                let server = try HTTP2Server(connection)
                while let (id, request) = try server.nextRequest() {
                    if connection.number == 0 {
                        try server.goAway(0)
                    } else {
                        try server.answer(id, content: "\(request.content.count)")
                    }
                }
            }
            defer { origin.stop() }
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(calls: origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let gateway = try ClientSide.inTheClear { try scenario.serve() }
            let content = [UInt8](repeating: 7, count: count)
            let request = SoftwareKey.Request(method: "POST", target: "/v1/held", content: content)
            let proof = key.proof(of: request, signing: Self.signing)
            let answer = try HTTPClient(port: gateway.port).send(request, proof)
            expectEqual(answer.status, 200)
            expectEqual(answer.text, "\(count)")
            expectEqual(origin.requests.map(\.body.count), [count, count])
        }
    }
}
