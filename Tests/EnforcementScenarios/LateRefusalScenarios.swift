import DeviceKey
import Expectations
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Synchronization
import TestSupport
import Testing

extension Scenarios {
    /// Requests that are refused after their content has begun to go to an origin of HTTP/2.
    @Suite struct LateRefusals {
        enum Fault: String, CaseIterable, Sendable {
            case revoked = "key-revoked"
            case deleted = "key-unknown"

            var order: String { self == .revoked ? "revoke" : "delete" }
            var status: Int { self == .revoked ? 403 : 401 }
        }

        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let rules = """
            - id: bare
              match: { path: /v1/bare }
              origin: calls
              mode: enforce
              sign: [method, target]
            - id: other
              match: { path: /v1/other }
              origin: calls
              mode: enforce
              sign: [method, target]
            """

        /// The end of a stream, as the server saw it.
        private struct Ending: Sendable {
            var code: UInt32?
            var isComplete = false
        }

        private static func signed(
            _ key: inout SoftwareKey,
            _ target: String
        ) -> [(name: String, value: String)] {
            let request = SoftwareKey.Request(method: "POST", target: target)
            return key.proof(of: request, signing: signing).fields
        }

        private static func chunk(_ count: Int) -> [UInt8] {
            let content = [UInt8](repeating: 7, count: count)
            return Array((String(count, radix: 16) + "\r\n").utf8) + content + Array("\r\n".utf8)
        }

        @Test(arguments: Fault.allCases)
        func `a late refusal resets the stream, and its connection stays`(fault: Fault) throws {
            let (began, ended) = (Gate(), Gate())
            let ending = Mutex(Ending())
            let origin = try TestOrigin { connection in
                let server = try HTTP2Server(connection)
                while let (id, request) = try server.nextHead() {
                    guard request.path == "/v1/bare" else {
                        try server.answer(id, content: "\(connection.number)")
                        continue
                    }
                    began.open()
                    let last = try server.read(id) { $0.reset != nil || $0.isComplete }
                    ending.withLock { $0 = Ending(code: last.reset, isComplete: last.isComplete) }
                    ended.open()
                }
            }
            defer { origin.stop() }
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(calls: origin, rules: Self.rules)
            var keys = try scenario.imported(2)
            let gateway = try ClientSide.inTheClear { try scenario.serve() }

            let client = try Wire(port: gateway.port)
            let fields = Self.signed(&keys[0], "/v1/bare") + [("Transfer-Encoding", "chunked")]
            let head = HTTPClient.head("POST", "/v1/bare", fields) + "\r\n"
            try client.send(Array(head.utf8) + Self.chunk(20_000))
            try began.pass()
            let file = scenario.path("portcullis.yaml")
            let id = keys[0].keyID.base64
            let done = try scenario.portcullis("keys", fault.order, "--config", file, id)
            try #require(done.status == 0, "\(done.complained)")
            let admin = try gateway.adminClient()
            let isHeard = try eventually {
                let metrics = try Metrics(admin)
                return metrics["keys_revoked"] == 1 || metrics["keys"] == 1
            }
            try #require(isHeard)
            try client.send(Self.chunk(20_000) + Array("0\r\n\r\n".utf8))
            let answer = try client.readHead()
            #expect(answer.startLine.hasPrefix("HTTP/1.1 \(fault.status)"))
            expectEqual(answer.value("App-Attest-Error")?.hasPrefix(fault.rawValue), true)
            try ended.pass()
            // CANCEL, and no END_STREAM: a server takes such content for no whole message.
            let seen = ending.withLock { $0 }
            #expect(seen.code == 8 && !seen.isComplete)
            let line = try gateway.line(about: "/v1/bare")
            #expect(line["content"] as? String == "cut-short")
            let others = Self.signed(&keys[1], "/v1/other")
            let other = try HTTPClient(port: gateway.port).send("POST", "/v1/other", others)
            #expect(other.status == 200 && other.text == "0")
            let metrics = try Metrics(try gateway.adminClient())
            expectEqual(metrics["origin_http2_resets_sent_total"], 1)
            expectEqual(metrics["origin_http2_connections_total"], 1)
        }
    }
}
