import Cryptography
import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Content that was verified and is on its way to an origin that is slow to take it.
    @Suite(.overEachClient) struct WholeContent {
        private static let rules = """
            - id: held
              match: { path: /held }
              mode: enforce
              sign: [method, target, body]
              challenge: none
            """

        @Test func `a client that resets does not choose where its verified content ends`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let address = "127.0.0.1:\(origin.port)"
            try scenario.configure(origin: address, rules: Self.rules, loops: 1)
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            origin.pause()

            let content = [UInt8](repeating: 0x61, count: 9 << 20)
            let request = SoftwareKey.Request(method: "POST", target: "/held", content: content)
            let signing = SigningForm.lines([.method, .target, .body], headers: [])
            var fields = key.proof(of: request, signing: signing).fields
            fields.append(("Content-Length", String(content.count)))
            let socket = try Wire(port: gateway.port)
            try socket.send(
                Array((HTTPClient.head("POST", "/held", fields) + "\r\n").utf8) + content
            )
            // The head is there, so the content was verified and waits for the origin.
            try origin.awaitHeads(1)
            socket.reset()
            // The gateway's only event loop has heard of the reset when it answers what came later.
            for _ in 0..<3 { _ = try gateway.challenges("assertion", gateway.client()) }
            origin.resume()

            let seen = try origin.seen(1)[0]
            #expect(seen.isComplete && !seen.wasReset)
            expectEqual(seen.count, content.count)
            expectEqual(seen.digest, SHA256.digest(content.span))
        }
    }
}
