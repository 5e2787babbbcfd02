import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// Nothing of one client's request is seen in another's.
    @Suite struct Separation {
        private static let secret = "POST /secret HTTP/1.1\r\nHost: private.example\r\n"
        /// Complete, and no request: two Hosts.
        private static let malformed = Array("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".utf8)

        @Test func `a malformed head is logged without anything of the request before`() throws {
            let stand = try Stand(more: "log: { access: ./access.log }", loops: 1)
            defer { stand.end() }
            let first = stand.gateway.client()
            let content = String(repeating: "x", count: 77)
            let request = Self.secret + "Content-Length: 77\r\n\r\n" + content
            try expectEqual(first.send(raw: Array(request.utf8)).status, 200)
            try expectEqual(stand.gateway.client().send(raw: Self.malformed).status, 400)
            try stand.stop()
            let log = try String(contentsOfFile: stand.scenario.path("access.log"), encoding: .utf8)
            let line = try #require(log.split(separator: "\n").last)
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            let members = try #require(object as? [String: Any])
            #expect(members["problem"] as? String == "host-invalid")
            for name in ["method", "host", "path"] {
                #expect(members[name] as? String == "", "\(name)")
            }
            #expect(members["request_bytes"] as? Int == 0)
            #expect(members["origin"] == nil)
        }

        @Test func `after a HEAD of one client an error answer to another has content`() throws {
            let stand = try Stand(loops: 1)
            defer { stand.end() }
            try expectEqual(stand.gateway.client().send("HEAD", "/plain").status, 200)
            let answer = try stand.gateway.client().send(raw: Self.malformed)
            expectEqual(answer.status, 400)
            expectEqual(answer.reason, "host-invalid")
            try stand.stop()
        }
    }
}
