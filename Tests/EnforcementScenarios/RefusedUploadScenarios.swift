import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Clients that write all of their content before they read, as Python's `requests` and OkHttp
    /// do, and are refused meanwhile.
    @Suite struct RefusedUploads {
        private static let rules = """
            - id: orders
              match: { path: /v1/** }
              mode: enforce
              sign: content
            """

        /// A gateway that refuses, and what such a client sends first.
        private static func serve(
            in scenario: Scenario,
            more: String = ""
        ) throws -> (gateway: GatewayProcess, origin: RecordingOrigin) {
            let origin = try scenario.origin()
            try scenario.configure(
                origin: origin.address,
                rules: rules,
                more: more,
                listeners: "  - { address: 127.0.0.1:0, http2: on }"
            )
            return (try scenario.serve(), origin)
        }

        private static func head(_ count: Int) -> String {
            "POST /v1/orders HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n"
        }

        @Test func `a client that reads when it has sent all sees why it was refused`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try Self.serve(in: scenario)
            let content = [UInt8](repeating: 0x61, count: 24 << 20)
            let client = try Wire(port: gateway.port)
            try client.send(Self.head(content.count))
            // The answer is on its way before most of the content.
            client.awaitHangup()
            try client.send(content)
            client.finishSending()
            let response = try client.readResponse(to: "POST")
            expectEqual(response.status, 401)
            #expect(String(decoding: response.body, as: UTF8.self).contains("assertion-missing"))
            #expect(origin.seen.isEmpty)
        }

        /// nginx writes all of a request to its upstream before it reads, and makes 502 of a reset.
        @Test func `behind nginx an upload is refused by the gateway's own answer`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try Self.serve(in: scenario).gateway
            guard let front = try NginxFront(scenario, before: gateway, forwarded: false) else {
                return
            }
            let content = [UInt8](repeating: 0x61, count: 20 << 20)
            for _ in 0..<5 {
                let client = HTTPClient(port: front.port)
                let answer = try client.send("POST", "/v1/orders", content: content)
                #expect(answer.status == 401 && answer.reason == "assertion-missing")
            }
        }

        @Test(arguments: ["timeouts: { linger_total: 500ms }", "limits: { drain: 64B }"])
        func `a refused client that goes on for too long is cut off`(more: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try Self.serve(in: scenario, more: more).gateway
            let client = try Wire(port: gateway.port)
            try client.send(Self.head(1 << 20))
            try expectEqual(client.readResponse(to: "POST").status, 401)
            #expect(
                eventually {
                    // Without the limit each piece would go its way, far from the silence of 5 s.
                    guard (try? client.send("0123456789")) != nil else { return true }
                    return client.isReset(within: 50)
                }
            )
        }

        @Test func `a refused client that sends without a pause is cut off, too`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let more = "timeouts: { linger_total: 500ms }"
            let gateway = try Self.serve(in: scenario, more: more).gateway
            let client = try Wire(port: gateway.port)
            try client.send(Self.head(1 << 20))
            try expectEqual(client.readResponse(to: "POST").status, 401)
            // No `eventually`, which pauses longer than a tick of the event loop's deadlines.
            let isCut = (0..<30_000).contains { _ in
                (try? client.send("0123456789")) == nil || client.isReset(within: 2)
            }
            #expect(isCut)
        }

        @Test func `over HTTP/2 the response comes first, and the rest is read`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin) = try Self.serve(in: scenario)
            let client = try HTTP2Client(try Wire(port: gateway.clientPort))
            let id = try client.open(HTTP2Client.post("/v1/orders"), ends: false)
            try expectEqual(client.answer(id).status, 401)
            try client.sendInTime([UInt8](repeating: 0x61, count: 1 << 20), on: id)
            try expectEqual(client.ask(HTTP2Client.get("/v1/orders")).status, 401)
            // curl 7.88 takes a reset that comes with the response for a failure.
            expectEqual(client.soFar(id).reset, nil)
            #expect(origin.seen.isEmpty)
        }

        @Test(arguments: ["timeouts: { linger: 200ms }", "limits: { drain: 64B }"])
        func `over HTTP/2 a request that does not end is reset without an error`(
            more: String
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try Self.serve(in: scenario, more: more).gateway
            let client = try HTTP2Client(try Wire(port: gateway.clientPort))
            let id = try client.open(HTTP2Client.post("/v1/orders"), ends: false)
            try expectEqual(client.answer(id).status, 401)
            try client.send([UInt8](repeating: 0x61, count: 100), on: id, ends: false)
            try client.readUntil { client.soFar(id).reset != nil }
            expectEqual(client.soFar(id).reset, 0)
            try expectEqual(client.ask(HTTP2Client.get("/v1/orders")).status, 401)
        }
    }
}
