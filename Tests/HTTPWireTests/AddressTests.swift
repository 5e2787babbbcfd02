import HTTPWire
import Testing

struct AddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8::0:1", "2001:db8::1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("::ffff:192.0.2.1", "192.0.2.1"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ])
    func `an address is read and written in its canonical form`(_ source: String, _ text: String) {
        #expect(IPAddress(source)?.text == text)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", "1.2.3.+4", ":", ":::",
        "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "::1%eth0", "[::1]", "::1:",
        ":1::", "1:2:3:4:5:6:7:8::", "::1.2.3", "1.2.3.4::", "::1.2.3.4:5", "1:2:3:4:5:6:7:1.2.3.4",
    ])
    func `what is no address is none`(_ source: String) {
        #expect(IPAddress(source) == nil)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
        ("0.0.0.0/0", "1.2.3.4", true), ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1/32", "192.0.2.2", false), ("2001:db8::/32", "2001:db8:ffff::1", true),
        ("2001:db8::/32", "2001:db9::1", false), ("::/0", "::1", true), ("::/0", "1.2.3.4", false),
        ("::1/128", "::1", true), ("2001:db8:0:0:8000::/65", "2001:db8::8000:0:0:1", true),
        ("2001:db8:0:0:8000::/65", "2001:db8::1", false), ("10.0.0.0/8", "::ffff:10.1.1.1", true),
    ])
    func `a network holds its addresses`(_ network: String, _ address: String, _ is: Bool) throws {
        let network = try #require(IPNetwork(network))
        #expect(try network.contains(#require(IPAddress(address))) == `is`)
    }

    @Test(arguments: [
        "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/+8", "x/8", "::1/129", "",
    ])
    func `what is no network is none`(_ source: String) {
        #expect(IPNetwork(source) == nil)
    }

    private static func client(
        _ fields: String,
        _ source: ClientAddress.Source = .xForwardedFor,
        peer: String = "10.0.0.1"
    ) throws -> String {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n"
        let octets = Array(text.utf8)
        let head = try RequestHead.reading(text)
        let trusted = try #require(IPNetwork("10.0.0.0/8"))
        let address = try ClientAddress.find(
            head.fields,
            octets.span,
            source: source,
            peer: #require(IPAddress(peer))
        ) { trusted.contains($0) }
        return address.text
    }

    @Test(arguments: [
        ("X: y", "10.0.0.1"), ("X-Forwarded-For: 1.1.1.1", "1.1.1.1"),
        ("X-Forwarded-For: 9.9.9.9, 1.1.1.1, 10.2.2.2", "1.1.1.1"),
        ("X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: 1.1.1.1", "1.1.1.1"),
        ("X-Forwarded-For: 9.9.9.9, 10.2.2.2\r\nX-Forwarded-For: 10.3.3.3", "9.9.9.9"),
        ("X-Forwarded-For: 9.9.9.9, junk, 10.2.2.2", "10.2.2.2"),
        ("X-Forwarded-For: 10.2.2.2", "10.2.2.2"), ("X-Forwarded-For: 1.1.1.1:5555", "1.1.1.1"),
        ("X-Forwarded-For: [2001:db8::1]:5555", "2001:db8::1"),
        ("X-Forwarded-For: 2001:db8::1", "2001:db8::1"), ("X-Forwarded-For:", "10.0.0.1"),
        ("X-Forwarded-For: 1.1.1.1,", "10.0.0.1"), ("Forwarded: for=1.1.1.1", "10.0.0.1"),
    ])
    func `X-Forwarded-For is walked from the right past trusted proxies`(
        _ fields: String,
        _ address: String
    ) throws {
        #expect(try Self.client(fields) == address)
        #expect(try Self.client(fields, peer: "8.8.8.8") == "8.8.8.8")
    }

    @Test(arguments: [
        ("Forwarded: for=1.1.1.1;proto=https", "1.1.1.1"),
        ("Forwarded: proto=http; FOR=\"[2001:db8::1]:47\"", "2001:db8::1"),
        ("Forwarded: for=9.9.9.9, for=1.1.1.1, for=10.2.2.2", "1.1.1.1"),
        ("Forwarded: for=\"1.1.1.1,x\", for=10.2.2.2", "10.2.2.2"),
        ("Forwarded: for=unknown", "10.0.0.1"), ("Forwarded: by=1.1.1.1", "10.0.0.1"),
        ("Forwarded: for=\"1.1.1.1", "10.0.0.1"), ("Forwarded: for=_a, for=10.2.2.2", "10.2.2.2"),
    ])
    func `Forwarded is walked from the right past trusted proxies`(
        _ fields: String,
        _ address: String
    ) throws {
        #expect(try Self.client(fields, .forwarded) == address)
    }

    private static func provenance(_ fields: String, trusted: Bool) throws -> String {
        let text = "GET / HTTP/1.1\r\nHost: a.test\r\n\(fields)\r\n"
        let octets = Array(text.utf8)
        let head = try RequestHead.reading(text)
        let writer = try ProvenanceWriter(
            peer: #require(IPAddress("2001:db8::1")),
            peerIsTrusted: trusted,
            isSecure: true,
            writesForwarded: true
        )
        var out: [UInt8] = []
        var options = HeadWriter.RequestOptions()
        options.dropping.formUnion(writer.dropped)
        HeadWriter.beginRequest(head, octets.span, options, into: &out)
        writer.write(head, octets.span, into: &out)
        HeadWriter.endHead(into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    private static let claims =
        "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: http\r\n"
        + "X-Forwarded-Prefix: /p\r\nX-Real-IP: 3.3.3.3\r\nForwarded: for=1.1.1.1\r\n"

    @Test func `what an untrusted peer says of the client is replaced`() throws {
        #expect(
            try Self.provenance(Self.claims, trusted: false)
                == "GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 portcullis\r\n"
                + "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n"
                + "X-Forwarded-Host: a.test\r\n"
                + "Forwarded: for=\"[2001:db8::1]\";proto=https;host=\"a.test\"\r\n\r\n"
        )
    }

    @Test func `what a trusted peer says of the client is continued`() throws {
        #expect(
            try Self.provenance(Self.claims, trusted: true)
                == "GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: http\r\n"
                + "X-Forwarded-Prefix: /p\r\nX-Real-IP: 3.3.3.3\r\nVia: 1.1 portcullis\r\n"
                + "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 2001:db8::1\r\nX-Forwarded-Host: a.test\r\n"
                + "Forwarded: for=1.1.1.1, for=\"[2001:db8::1]\";proto=https;"
                + "host=\"a.test\"\r\n\r\n"
        )
    }
}
