import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// By what name a request is known: in the log, to the origin, and in a problem document.
    @Suite struct Identities {
        private static let trace = "0af7651916cd43dd8448eb211c80319c"
        private static let sent = [
            (name: "X-Request-Id", value: "chosen-by-the-client"),
            (name: "traceparent", value: "00-\(trace)-b7ad6b7169203331-01"),
            (name: "tracestate", value: "vendor=1"),
        ]
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
            """

        /// What the origin and the log tell of a request with names of its own.
        private func seen(
            _ more: String
        ) throws -> (head: WireHead, line: [String: Any]) {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules, more: more)
            let gateway = try scenario.serve()
            try expectEqual(gateway.client().send("GET", "/open", Self.sent).status, 200)
            return (try origin.seen(1)[0].head, try gateway.line(about: "/open"))
        }

        private func isOwn(_ text: String?) -> Bool {
            guard let text else { return false }
            return text.utf8.count == 32 && text.allSatisfy { "0123456789abcdef".contains($0) }
        }

        @Test func `a stranger chooses neither a request id nor a trace`() throws {
            let (head, line) = try seen("")
            let id = line["request_id"] as? String
            #expect(isOwn(id))
            expectEqual(head.all("x-request-id"), [id].compactMap(\.self))
            #expect(!head.has("traceparent") && !head.has("tracestate"))
            #expect(line["trace_id"] == nil)
        }

        @Test func `a trusted proxy's request id and trace go on as they came`() throws {
            let (head, line) = try seen("trusted_proxies: [127.0.0.0/8]\ntraces: begin")
            #expect(line["request_id"] as? String == "chosen-by-the-client")
            #expect(line["trace_id"] as? String == Self.trace)
            for (name, value) in Self.sent { expectEqual(head.all(name.lowercased()), [value]) }
        }

        @Test func `where a trace begins here, it has the request's name`() throws {
            for (word, flags) in [("begin", "00"), ("begin-sampled", "01")] {
                let (head, line) = try seen("traces: \(word)")
                let id = try #require(line["request_id"] as? String)
                #expect(line["trace_id"] as? String == id)
                let parent = try #require(head.value("traceparent"))
                #expect(parent.hasPrefix("00-\(id)-") && parent.hasSuffix("-\(flags)"))
                #expect(parent.utf8.count == 55 && !head.has("tracestate"))
            }
        }

        @Test func `an app's own trace reaches an origin that keeps it`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules, more: "traces: begin")
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let kept = text.replacing("\"] }", with: "\"], keep_fields: [traceparent] }")
            try scenario.write("portcullis.yaml", kept)
            _ = try scenario.serve().client().send("GET", "/open", Self.sent)
            let head = try origin.seen(1)[0].head
            expectEqual(head.all("traceparent"), [Self.sent[1].value])
            #expect(!head.has("tracestate"))
        }

        @Test func `a refusal has the name that the log has`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            let gateway = try scenario.serve()
            let client = gateway.client()
            let refused = try client.send("POST", "/v1/orders", Self.sent, content: [1])
            expectEqual(refused.reason, "assertion-missing")
            let id = try gateway.line(about: "/v1/orders")["request_id"] as? String
            #expect(isOwn(id))
            expectEqual(refused.member("request_id"), id)
            // A head that can't be read has a name as well.
            let malformed = try client.send(raw: Array("GET / HTTP/1.1\r\nHost : a\r\n\r\n".utf8))
            #expect(malformed.status == 400 && isOwn(malformed.member("request_id")))
        }
    }
}
