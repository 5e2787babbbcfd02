import Expectations
import HTTPWire
import Rules
import Testing

/// The view of a path.
func view(_ path: String) -> TargetView {
    let bytes = Array(path.utf8)
    var view = TargetView()
    view.read(bytes.span, 0..<bytes.count)
    return view
}

@Suite struct RouteMatchTests {
    @Test(arguments: [
        ("/v1/orders", "/v1/orders", true),
        ("/v1/orders", "/v1/%6frders", true),
        ("/v1/%6Frders", "/v1/orders", true),
        ("/v1/orders", "/v1/Orders", false),
        ("/v1/orders", "/v1/orders/", false),
        ("/v1/orders", "/v1/orders/7", false),
        ("/v1/orders", "/v1", false),
        ("/v1/orders/", "/v1/orders/", true),
        ("/v1/a:b", "/v1/a%3Ab", true),
        ("/", "/", true),
        ("/", "/a", false),
        ("/**", "/", true),
        ("/**", "/a/b/c", true),
        ("/v1/*", "/v1/x", true),
        ("/v1/*", "/v1/", false),
        ("/v1/*", "/v1", false),
        ("/v1/*", "/v1/x/y", false),
        ("/v1/*/items", "/v1/x/items", true),
        ("/v1/*/items", "/v1//items", false),
        ("/v1/**", "/v1", true),
        ("/v1/**", "/v1/", true),
        ("/v1/**", "/v1/x/y", true),
        ("/v1/**", "/v10", false),
        ("/*/b/**", "/a/b", true),
    ])
    func `a pattern takes these paths`(pattern: String, path: String, isMatch: Bool) throws {
        let view = view(path)
        let segments = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
        try expectEqual(PathPattern(pattern).matches(segments), isMatch)
    }

    @Test(
        arguments: [
            ("v1", .noLeadingSlash), ("", .noLeadingSlash), ("/a*", .partialWildcard),
            ("/a/*b/c", .partialWildcard), ("/***", .partialWildcard), ("/**/a", .restBeforeEnd),
            ("/a?b", .character), ("/a#b", .character), ("/a b", .character), ("/é", .character),
            ("/a%2Ab", .character), ("/a%3bx", .character), ("//a", .emptySegment),
            ("/a//b", .emptySegment), ("/a//**", .emptySegment), ("/;x", .emptySegment),
            ("/a/;x/b", .emptySegment),
            (String(repeating: "/a", count: 65), .tooManySegments),
        ] as [(String, PathPattern.Fault)]
    )
    func `a text that is no pattern is refused`(text: String, fault: PathPattern.Fault) {
        #expect(throws: fault) { try PathPattern(text) }
    }

    @Test(
        arguments: [
            ("/v1/{id}", "/v1/*"), ("/v1/:id", "/v1/*"), ("/v1/<id>", "/v1/*"),
            ("/v1/<int:id>/x", "/v1/*/x"), ("/v1/[id]", "/v1/*"), ("/:a/:b", "/*/*"),
            ("/v1/{id}.json", "/v1/*"), ("/v1/:_id/**", "/v1/*/**"), ("/v1/{path...}", "/v1/**"),
            ("/v1/{*path}", "/v1/**"), ("/v1/{path:path}", "/v1/**"), ("/v1/<path:x>", "/v1/**"),
            ("/v1/[...slug]", "/v1/**"), ("/v1/:path*", "/v1/**"), ("/{a...}/b", "/*/b"),
        ]
    )
    func `a router's placeholder matches nothing, and is refused with what was meant`(
        row: (text: String, meant: String)
    ) {
        #expect(throws: PathPattern.Fault.placeholder(meant: row.meant)) {
            try PathPattern(row.text)
        }
    }

    @Test(arguments: [
        "/v1/orders:cancel", "/v1/%3Aid", "/v1/%7Bid%7D", "/v1/a:b:c", "/v1/:8", "/:",
    ])
    func `a colon that begins no name is a character of the path`(text: String) throws {
        try expectEqual(PathPattern(text).text, text)
    }

    @Test(arguments: ["/a/../b", "/a/./b", "/%2e%2e", "/a%2Fb", "/a%5Cb", "/a\\b", "/a%", "/a%00"])
    func `a pattern that no admitted request can meet is refused`(text: String) {
        #expect(throws: PathPattern.Fault.self) { try PathPattern(text) }
    }

    @Test(arguments: [
        ("api.example.com", "api.example.com", true),
        ("api.example.com", "API.Example.COM:8443", true),
        ("api.example.com", "api.example.com.", true),
        ("api.example.com", "xapi.example.com", false),
        ("api.example.com", "api.example.com.evil.org", false),
        ("*.example.com", "api.example.com", true),
        ("*.example.com", "a.b.example.com:80", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", ".example.com", false),
        ("*.example.com", "notexample.com", false),
        ("*", "anything", true),
        ("10.0.0.1", "10.0.0.1:80", true),
        ("[2001:db8::1]", "[2001:DB8::1]:443", true),
        ("[2001:db8::1]", "[2001:db8::2]", false),
        ("[2001:db8::1]", "[2001:0DB8:0:0:0:0:0:1]", true),
        ("[2001:db8:0:0::1]", "[2001:db8::0001]:80", true),
        ("[::ffff:192.0.2.1]", "[::FFFF:c000:201]", true),
        ("[::ffff:192.0.2.1]", "192.0.2.1:8080", true),
        ("192.0.2.1", "[::ffff:192.0.2.1]", true),
        ("192.0.2.1", "192.0.2.1.", true),
        ("192.0.2.1", "192.0.2.10", false),
        ("[::1]", "[::ffff:0.0.0.1]", false),
        ("[::1]", "1", false),
        ("*", "[::1]", true),
        ("api.example.com", "", false),
    ])
    func `a host pattern takes these hosts`(pattern: String, host: String, isMatch: Bool) throws {
        let pattern = try #require(HostPattern(text: pattern))
        let bytes = Array(host.utf8)
        expectEqual(pattern.matches(bytes.span), isMatch)
    }

    @Test(
        arguments: [
            "", "api.example.com:80", "*example.com", "a.*.com", "api..com", "http://a", "a/b",
            "a b",
            "*.", "[::1", "[10.0.0.1]", "*.[::1]", "-", "é.com",
        ].filter { $0 != "-" }
    )
    func `a text that is no host pattern is refused`(text: String) {
        expectEqual(HostPattern(text: text), nil)
    }

    @Test(arguments: [
        ("* /**", "POST /a", true),
        ("* /a", "POST /a", true),
        ("POST /a", "* /a", false),
        ("GET,POST /a", "POST /a", true),
        ("GET /a", "GET,POST /a", false),
        ("* /a/*", "* /a/b", true),
        ("* /a/b", "* /a/*", false),
        ("* /a/**", "* /a", true),
        ("* /a/**", "* /a/b/c", true),
        ("* /a/**", "* /a/*/c/**", true),
        ("* /a/*", "* /a/**", false),
        ("* /a/*", "* /a/", false),
        ("* /a", "* /a/", false),
        ("* /a/*", "* /a/b;x", true),
        ("GET /a", "HEAD /a", true),
        ("HEAD /a", "GET /a", false),
        ("GET /a", "GET,HEAD /a", true),
    ])
    func `a match covers another`(first: String, second: String, isCovered: Bool) throws {
        try expectEqual(match(first).covers(match(second)), isCovered)
    }

    @Test(arguments: [
        ("*", "api.example.com", true), ("api.example.com", "*", false),
        ("*.example.com", "api.example.com", true), ("*.example.com", "*.api.example.com", true),
        ("*.example.com", "*.example.com", true), ("*.example.com", "example.com", false),
        ("[::1]", "[0::1]", true), ("[::1]", "[::2]", false), ("10.0.0.1", "*", false),
        ("api.example.com", "*.example.com", false), ("*.api.example.com", "*.example.com", false),
    ])
    func `a host pattern covers another`(first: String, second: String, isCovered: Bool) throws {
        let first = try #require(HostPattern(text: first))
        expectEqual(first.covers(try #require(HostPattern(text: second))), isCovered)
    }

    private func match(_ text: String) throws -> RouteMatch {
        let parts = text.split(separator: " ")
        let methods = parts[0] == "*" ? nil : parts[0].split(separator: ",").map(String.init)
        return RouteMatch(methods: methods, path: try PathPattern(String(parts[1])))
    }
}
