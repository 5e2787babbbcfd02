import Expectations
import HTTPWire
import Testing

struct ClientAddressTests {
    private static func address(
        _ text: String,
        _ source: ClientAddress.Source,
        peer: String
    ) throws -> ClientAddress {
        let bytes = Array(text.utf8)
        let head = try RequestHead.reading(text)
        let trusted = try #require(IPNetwork("10.0.0.0/8"))
        var address = ClientAddress()
        // What an earlier request left behind has no effect.
        let earlier = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, 10.9.9.9\r\n\r\n"
        let before = Array(earlier.utf8)
        try address.read(
            RequestHead.reading(earlier).fields,
            before.span,
            source: .xForwardedFor,
            peer: .v4(1)
        ) { _ in true }
        try address.read(
            head.fields,
            bytes.span,
            source: source,
            peer: #require(IPAddress(peer))
        ) { trusted.contains($0) }
        return address
    }

    private static func client(
        _ fields: String,
        _ source: ClientAddress.Source = .xForwardedFor,
        peer: String = "10.0.0.1"
    ) throws -> String {
        try address(
            "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n",
            source,
            peer: peer
        ).client.text
    }

    @Test(arguments: [
        ("X: y", "10.0.0.1"), ("X-Forwarded-For: 1.1.1.1", "1.1.1.1"),
        ("X-Forwarded-For: 9.9.9.9, 1.1.1.1, 10.2.2.2", "1.1.1.1"),
        ("X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: 1.1.1.1", "1.1.1.1"),
        ("X-Forwarded-For: 9.9.9.9, 10.2.2.2\r\nX-Forwarded-For: 10.3.3.3", "9.9.9.9"),
        ("X-Forwarded-For: 9.9.9.9, junk, 10.2.2.2", "10.2.2.2"),
        ("X-Forwarded-For: 10.2.2.2", "10.2.2.2"), ("X-Forwarded-For: 1.1.1.1:5555", "1.1.1.1"),
        ("X-Forwarded-For: [2001:db8::1]:5555", "2001:db8::1"),
        ("X-Forwarded-For: [2001:db8::1]", "2001:db8::1"),
        ("X-Forwarded-For: 2001:db8::1", "2001:db8::1"), ("X-Forwarded-For:", "10.0.0.1"),
        ("X-Forwarded-For: ::ffff:1.1.1.1", "1.1.1.1"),
        ("X-Forwarded-For: 1.1.1.1,", "10.0.0.1"), ("Forwarded: for=1.1.1.1", "10.0.0.1"),
        ("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For:", "10.0.0.1"),
        ("X-Forwarded-For: 9.9.9.9,1.1.1.1 ,\t10.2.2.2", "1.1.1.1"),
    ])
    func `X-Forwarded-For is read from the right past trusted proxies`(
        _ fields: String,
        _ address: String
    ) throws {
        try expectEqual(Self.client(fields), address)
        try expectEqual(Self.client(fields, peer: "8.8.8.8"), "8.8.8.8")
    }

    @Test(arguments: [
        #"""#, #""x"#, #"\"#, #"\""#, "for=\"", "unknown", "_hidden", "10.0.0.1", "::ffff:10.0.0.1",
        "[::ffff:10.0.0.1]:80", "10.0.0.1:80", "127.0.0.1", ",", "", "1.1.1.1,", ";;;", "999.1.1.1",
        "[1.1.1.1]", "1.1.1.1:", "1.1.1.1:123456", "[2001:db8::1", "2001:db8::1]:80", "é",
    ])
    func `whatever a client writes, what the proxy appends counts`(_ written: String) throws {
        let lines = ["\(written), 203.0.113.5", "\(written)\r\nX-Forwarded-For: 203.0.113.5"]
        for line in lines {
            try expectEqual(Self.client("X-Forwarded-For: \(line)"), "203.0.113.5")
            let deeper = "X-Forwarded-For: \(line), 10.2.2.2"
            try expectEqual(Self.client(deeper), "203.0.113.5")
        }
        for entry in ["for=203.0.113.5;proto=https", #"host="a,b";for="203.0.113.5:47""#] {
            let lines = ["\(written), \(entry)", "\(written)\r\nForwarded: \(entry)"]
            for line in lines {
                try expectEqual(Self.client("Forwarded: \(line)", .forwarded), "203.0.113.5")
            }
        }
    }

    @Test(arguments: [
        "unknown", "_hidden", #"""#, "junk", "", "[1.1.1.1]", "1.1.1.1:", "2001:db8::1]", "[]:1",
        "1.1.1.1:123456", "[2001:db8::1]x", "[2001:db8::1]:x", "::1.2.3.4:80:", "unix:", "[", ":80",
    ])
    func `what is no address is charged to the hop behind it`(_ entry: String) throws {
        try expectEqual(Self.client("X-Forwarded-For: 9.9.9.9, \(entry)"), "10.0.0.1")
        try expectEqual(Self.client("X-Forwarded-For: 9.9.9.9, \(entry), 10.2.2.2"), "10.2.2.2")
    }

    @Test(arguments: [
        ("Forwarded: for=1.1.1.1;proto=https", "1.1.1.1"),
        ("Forwarded: proto=http; FOR=\"[2001:db8::1]:47\"", "2001:db8::1"),
        ("Forwarded: for=9.9.9.9, for=1.1.1.1, for=10.2.2.2", "1.1.1.1"),
        ("Forwarded: for=9.9.9.9,for=1.1.1.1;by=\"a,b\\\"c\",for=10.2.2.2", "1.1.1.1"),
        ("Forwarded: for=\"1.1.1.1,x\", for=10.2.2.2", "10.2.2.2"),
        ("Forwarded: for=unknown", "10.0.0.1"), ("Forwarded: by=1.1.1.1", "10.0.0.1"),
        ("Forwarded: for=\"1.1.1.1", "10.0.0.1"), ("Forwarded: for=_a, for=10.2.2.2", "10.2.2.2"),
        ("Forwarded: for=1.1.1.1;for=2.2.2.2", "10.0.0.1"), ("Forwarded:", "10.0.0.1"),
        ("Forwarded: for=1.1.1.1\"", "10.0.0.1"), ("Forwarded: for", "10.0.0.1"),
        ("Forwarded: for=\"1.1.1.1\"x", "10.0.0.1"), ("Forwarded: =1.1.1.1", "10.0.0.1"),
        ("Forwarded: for=\"1.1.1.1\\\"", "10.0.0.1"), ("Forwarded: for=\"\"", "10.0.0.1"),
        ("Forwarded: ; for=1.1.1.1 ; ", "1.1.1.1"),
    ])
    func `Forwarded is read from the right past trusted proxies`(
        _ fields: String,
        _ address: String
    ) throws {
        try expectEqual(Self.client(fields, .forwarded), address)
    }

    @Test func `no more than sixteen entries are read`() throws {
        let many = (1...20).map { "10.1.1.\($0)" }.joined(separator: ", ")
        try expectEqual(Self.client("X-Forwarded-For: \(many)"), "10.1.1.5")
    }

    // MARK: What the origin is told

    private static func told(
        _ fields: String,
        trusted: Bool,
        source: ClientAddress.Source = .forwarded
    ) throws -> String {
        let text = "GET / HTTP/1.1\r\nHost: a.test\r\n\(fields)\r\n"
        let bytes = Array(text.utf8)
        let head = try RequestHead.reading(text)
        let peer = trusted ? "10.0.0.1" : "2001:db8::1"
        let writer = try ProvenanceWriter(
            peer: #require(IPAddress(peer)),
            peerIsTrusted: trusted,
            isSecure: true,
            writesForwarded: source == .forwarded
        )
        var out: [UInt8] = []
        HeadWriter.beginRequest(head, bytes.span, options: HeadWriter.RequestOptions(), into: &out)
        try writer.write(head, bytes.span, from: address(text, source, peer: peer), into: &out)
        HeadWriter.endHead(into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    private static let claims =
        "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nX-Forwarded-For: 10.2.2.2\r\n"
        + "X-Forwarded-Proto: http\r\nX-Forwarded-Host: b\r\nX-Forwarded-Prefix: /p\r\n"
        + "X-Real-IP: 3.3.3.3\r\nForwarded: for=\", for=4.4.4.4;proto=https, for=10.3.3.3\r\n"

    @Test func `what an untrusted peer says of the client is replaced`() throws {
        try expectEqual(
            Self.told(Self.claims, trusted: false),
            "GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 portcullis\r\n"
                + "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n"
                + "X-Forwarded-Host: a.test\r\n"
                + "Forwarded: for=\"[2001:db8::1]\";proto=https;host=\"a.test\"\r\n\r\n"
        )
    }

    @Test func `of what a trusted peer says the origin gets what is believed`() throws {
        try expectEqual(
            Self.told(Self.claims, trusted: true, source: .xForwardedFor),
            "GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 portcullis\r\n"
                + "X-Forwarded-For: 2.2.2.2, 10.2.2.2, 10.0.0.1\r\nX-Forwarded-Proto: http\r\n"
                + "X-Forwarded-Host: a.test\r\n\r\n"
        )
        try expectEqual(
            Self.told(Self.claims, trusted: true),
            "GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 portcullis\r\n"
                + "X-Forwarded-For: 4.4.4.4, 10.3.3.3, 10.0.0.1\r\nX-Forwarded-Proto: http\r\n"
                + "X-Forwarded-Host: a.test\r\n"
                + "Forwarded: for=4.4.4.4;proto=https, for=10.3.3.3, for=10.0.0.1;proto=https;"
                + "host=\"a.test\"\r\n\r\n"
        )
    }

    @Test(arguments: [
        ("https", "https"), ("HTTPS", "HTTPS"), ("wss", "wss"), ("https, http", "http"),
        ("ftp", "https"), ("", "https"), ("http,", "https"), ("http;x", "https"),
    ])
    func `a trusted peer's scheme is the last that it names, if it is one`(
        _ said: String,
        _ told: String
    ) throws {
        let head = try Self.told("X-Forwarded-Proto: \(said)\r\n", trusted: true)
        #expect(head.contains("X-Forwarded-Proto: \(told)\r\n"))
        expectEqual(head.split(separator: "\r\n").count { $0.hasPrefix("X-Forwarded-Proto") }, 1)
    }
}
