import Expectations
import HTTPWire
import Rules
import Testing

@testable import Proxy

@Suite struct FactTests {
    private func facts(_ lines: String..., isPooled: Bool = true) throws -> RequestFacts {
        let head = Array((lines + ["Host: a", "", ""]).joined(separator: "\r\n").utf8)
        var request = RequestHead()
        try request.read(head.span, isSecure: false, limits: HeadLimits())
        return RequestFacts(request, head.span, isPooled: isPooled)
    }

    private func kind(_ lines: String...) throws -> ResponseKind {
        let head = Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
        var response = ResponseHead()
        try response.read(head.span, to: .get, upgradeSent: true, limits: HeadLimits())
        return ResponseKind(response, head.span)
    }

    @Test func `a plain request asks for nothing`() throws {
        try expectEqual(facts("GET / HTTP/1.1"), .get)
    }

    @Test func `content of length 0 is none`() throws {
        #expect(try !facts("POST / HTTP/1.1", "Content-Length: 0").hasContent)
        #expect(try facts("POST / HTTP/1.1", "Content-Length: 1").hasContent)
        #expect(try facts("POST / HTTP/1.1", "Transfer-Encoding: chunked").hasContent)
    }

    @Test func `content that origins may leave unread isolates its connection`() throws {
        let length = "Content-Length: 5"
        try expectEqual(facts("GET / HTTP/1.1", length).demands, .isolation)
        try expectEqual(facts("GET / HTTP/1.1", "Content-Length: 0").demands, [])
        try expectEqual(facts("POST / HTTP/1.1", length).demands, [])
    }

    @Test func `all content isolates its connection where connections carry one request`() throws {
        let demands = try facts("POST / HTTP/1.1", "Content-Length: 5", isPooled: false).demands
        expectEqual(demands, .isolation)
    }

    @Test func `only a switch to WebSocket is asked for`() throws {
        let option = "Connection: upgrade"
        try expectEqual(facts("GET / HTTP/1.1", option, "Upgrade: websocket").demands, .upgrade)
        try expectEqual(facts("GET / HTTP/1.1", option, "Upgrade: h2c").demands, [])
        try expectEqual(facts("POST / HTTP/1.1", option, "Upgrade: websocket").demands, [])
    }

    @Test func `an authenticated connection is for nobody else`() throws {
        let demands = try facts("GET / HTTP/1.1", "Authorization: NTLM TlRMTVNTUAAB").demands
        expectEqual(demands, .authentication)
    }

    @Test func `trailers are taken where TE says so`() throws {
        try expectEqual(
            facts("GET / HTTP/1.1", "TE: trailers", "Connection: TE").demands,
            .trailers
        )
    }

    @Test func `a response says what becomes of the connections`() throws {
        let upgrade = ["Upgrade: websocket", "Connection: upgrade"]
        try expectEqual(kind("HTTP/1.1 101 S", upgrade[0], upgrade[1]), .switching)
        try expectEqual(kind("HTTP/1.1 200 OK", "Content-Length: 1"), .final(.keeps, .pass))
        try expectEqual(
            kind("HTTP/1.1 401 No", "WWW-Authenticate: NTLM", "Content-Length: 1"),
            .final(.drops, .pass)
        )
    }

    private static let places: [(Rule, UInt64, Content)] = [
        (.off, 1_024, .withHead), (.off, 1_025, .unread), (.holding, 1_024, .withHead),
        (.holding, 1_025, .held), (.holding, 2_001, .unread), (.limited, 151, .unread),
    ]

    @Test(arguments: places)
    func `content that came whole is judged where it is`(
        rule: Rule,
        count: UInt64,
        place: Content
    ) {
        expectEqual(Content.place(ofWhole: count, by: rule), place)
    }
}
