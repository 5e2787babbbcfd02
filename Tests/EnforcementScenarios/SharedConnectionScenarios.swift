import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Who shares a connection to an origin of HTTP/2.
    @Suite struct SharedConnections {
        private static let rules = """
            - id: proven
              match: { path: /v1/proven }
              origin: calls
              mode: enforce
              sign: [method, target]
            - { id: free, match: { path: /v1/free }, origin: calls, mode: off }
            """

        /// The server ends the connection of a stranger's request, as servers do that call a client
        /// to order, such as Tomcat.
        @Test func `a stranger's request can't end one that has proved itself`() throws {
            let (arrived, ended) = (Gate(), Gate())
            let origin = try TestOrigin { connection in
                let server = try HTTP2Server(connection)
                while let (id, request) = try server.nextHead() {
                    if request.path == "/v1/free" {
                        // ENHANCE_YOUR_CALM (RFC 9113 §7).
                        try server.goAway(id, 11)
                        return ended.open()
                    }
                    arrived.open()
                    try ended.pass()
                    try server.answer(id, content: "ok")
                }
            }
            defer { origin.stop() }
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(calls: origin, rules: Self.rules)
            var key = try scenario.imported()[0]
            let gateway = try ClientSide.inTheClear { try scenario.serve() }

            let proof = key.proof(
                of: SoftwareKey.Request(method: "GET", target: "/v1/proven"),
                signing: .lines([.method, .target], headers: [])
            )
            let client = try Wire(port: gateway.port)
            try client.send(
                Array((HTTPClient.head("GET", "/v1/proven", proof.fields) + "\r\n").utf8)
            )
            try arrived.pass()
            let stranger = try HTTPClient(port: gateway.port).send("GET", "/v1/free")
            expectEqual(stranger.status, 502)
            try expectEqual(client.readFinalResponse().text, "ok")
        }
    }
}
