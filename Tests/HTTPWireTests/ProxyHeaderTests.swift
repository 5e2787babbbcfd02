import Expectations
import HTTPWire
import Testing

struct ProxyHeaderTests {
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
    /// 192.0.2.1:51234 to 198.51.100.7:443.
    private static let ends: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 7, 0xC8, 0x22, 1, 0xBB]

    private static func binary(
        _ command: UInt8 = 0x21,
        _ family: UInt8 = 0x11,
        _ block: [UInt8] = ends
    ) -> [UInt8] {
        let length = [UInt8(truncatingIfNeeded: block.count >> 8), UInt8(block.count & 255)]
        return signature + [command, family] + length + block
    }

    private static func client(_ text: String, _ port: UInt16) throws -> ProxyHeader.Source {
        .client(try #require(IPAddress(text)), port: port)
    }

    /// Whole it is read, also with bytes behind it; every beginning of it asks for more.
    private static func expect(
        _ header: [UInt8],
        is source: ProxyHeader.Source,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let whole = ProxyHeader.Reading.complete(byteCount: header.count, source)
        for rest in [[], [UInt8]("GET / HTTP/1.1\r\n".utf8), header] {
            let bytes = header + rest
            try expectEqual(ProxyHeader.read(bytes.span), whole, sourceLocation: location)
        }
        for count in 0..<header.count {
            let reading = try ProxyHeader.read(header.span.extracting(first: count))
            expectEqual(reading, .needMore, "\(count)", sourceLocation: location)
        }
    }

    @Test(arguments: [
        ("TCP4 192.0.2.1 198.51.100.7 51234 443", "192.0.2.1", 51_234),
        ("TCP4 0.0.0.0 255.255.255.255 0 65535", "0.0.0.0", 0),
        ("TCP6 2001:db8::1 ::1 65535 443", "2001:db8::1", 65_535),
        ("TCP6 ::ffff:192.0.2.1 ::1 1 2", "192.0.2.1", 1),
        // 107 bytes, the longest.
        (
            "TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
                + " ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65_535
        ),
    ])
    func `a line names the client`(_ line: String, _ address: String, _ port: UInt16) throws {
        try Self.expect([UInt8]("PROXY \(line)\r\n".utf8), is: Self.client(address, port))
    }

    @Test(arguments: ["UNKNOWN", "UNKNOWN ", "UNKNOWN ffff:f...f:ffff 1 2", "UNKNOWN \u{1}"])
    func `a line of UNKNOWN names nobody, whatever it says`(_ line: String) throws {
        try Self.expect([UInt8]("PROXY \(line)\r\n".utf8), is: .unnamed)
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\n", MalformedProxyHeader.start), ("\u{16}\u{3}\u{1}", .start),
        ("proxy TCP4 ", .start), ("PROXY\t", .start), ("PROXYTCP4", .start),
        ("PROXY TCP 1.1.1.1 2.2.2.2 1 2\r\n", .family),
        ("PROXY tcp4 1.1.1.1 2.2.2.2 1 2\r\n", .family),
        ("PROXY  TCP4 1.1.1.1 2.2.2.2 1 2\r\n", .family), ("PROXY UNKNOWNS\r\n", .family),
        ("PROXY UDP4 1.1.1.1 2.2.2.2 1 2\r\n", .family), ("PROXY \r\n", .family),
        ("PROXY TCP4 ::1 ::2 1 2\r\n", .address), ("PROXY TCP6 1.1.1.1 2.2.2.2 1 2\r\n", .address),
        ("PROXY TCP4 1.1.1 2.2.2.2 1 2\r\n", .address), ("PROXY TCP4 1.1.1.1 x 1 2\r\n", .address),
        ("PROXY TCP4  1.1.1.1 2.2.2.2 1\r\n", .address), ("PROXY TCP4 1.1.1.1\r\n", .address),
        ("PROXY TCP4 01.1.1.1 2.2.2.2 1 2\r\n", .address),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", .port), ("PROXY TCP4 1.1.1.1 2.2.2.2 01 2\r\n", .port),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 65536 2\r\n", .port),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 +2\r\n", .port),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2 \r\n", .line),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n", .line),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n", .line), ("PROXY UNKNOWN\n\r\n", .line),
        ("PROXY UNKNOWN\r\r\n", .line),
        ("PROXY UNKNOWN " + String(repeating: "x", count: 92) + "\r\n", .tooLong),
    ])
    func `another line is malformed`(_ text: String, _ reason: MalformedProxyHeader) {
        let bytes = [UInt8](text.utf8)
        #expect(throws: reason) { try ProxyHeader.read(bytes.span) }
    }

    @Test func `a header of version 2 names the client`() throws {
        try Self.expect(Self.binary(), is: Self.client("192.0.2.1", 51_234))
        let six: [UInt8] =
            [0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [7]
            + [UInt8](repeating: 1, count: 16)
            + [0xC8, 0x22, 1, 0xBB]
        try Self.expect(Self.binary(0x21, 0x21, six), is: Self.client("2001:db8::7", 51_234))
        let attached = Self.ends + [2, 0, 4] + "shop".utf8 + [4, 0, 0]
        try Self.expect(Self.binary(0x21, 0x11, attached), is: Self.client("192.0.2.1", 51_234))
        let most = Self.ends + [4, 0x0F, 0xE1] + [UInt8](repeating: 0, count: 0xFE1)
        expectEqual(Self.binary(0x21, 0x11, most).count, ProxyHeader.byteCountMax)
        try Self.expect(Self.binary(0x21, 0x11, most), is: Self.client("192.0.2.1", 51_234))
    }

    @Test func `LOCAL, an unspecified family and Unix sockets name nobody`() throws {
        try Self.expect(Self.binary(0x20, 0, []), is: .unnamed)
        try Self.expect(Self.binary(0x20, 0xFF, [1, 2, 3]), is: .unnamed)
        try Self.expect(Self.binary(0x21, 0, []), is: .unnamed)
        let paths = [UInt8](repeating: 0x2F, count: 216)
        try Self.expect(Self.binary(0x21, 0x31, paths), is: .unnamed)
    }

    @Test(arguments: [
        (binary(0x11), MalformedProxyHeader.version), (binary(0x22), .version),
        (binary(0x21, 0x12), .family), (binary(0x21, 0x10), .family), (binary(0x21, 0x41), .family),
        (binary(0x21, 0x11, Array(ends.dropLast())), .address),
        (binary(0x21, 0x21, ends), .address), (binary(0x21, 0x31, ends), .address),
        (binary(0x21, 0x11, ends + [2, 0]), .attachment),
        (binary(0x21, 0x11, ends + [2, 0, 5] + "shop".utf8), .attachment),
        (binary(0x21, 0x11, ends + [UInt8](repeating: 0, count: 4_069)), .tooLong),
    ])
    func `another header of version 2 is malformed`(
        _ bytes: [UInt8],
        _ reason: MalformedProxyHeader
    ) {
        #expect(throws: reason) { try ProxyHeader.read(bytes.span) }
    }

    @Test func `what is written is what HAProxy's specification draws`() throws {
        let source = ProxyHeader.End(try #require(IPAddress("192.0.2.1")), port: 51_234)
        let own = ProxyHeader.End(try #require(IPAddress("198.51.100.7")), port: 443)
        var out: [UInt8] = []
        ProxyHeader.append((source, own), to: &out)
        expectEqual(out, Self.binary())
        out = []
        ProxyHeader.append(nil, to: &out)
        expectEqual(out, Self.binary(0x20, 0, []))
    }

    @Test func `ends of two families are written as IPv6`() throws {
        let source = ProxyHeader.End(try #require(IPAddress("192.0.2.1")), port: 1)
        let own = ProxyHeader.End(try #require(IPAddress("2001:db8::1")), port: 2)
        var out: [UInt8] = []
        ProxyHeader.append((source, own), to: &out)
        #expect(out[12...15].elementsEqual([0x21, 0x21, 0, 36]))
        #expect(
            out[16..<32].elementsEqual([UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1])
        )
        let whole = ProxyHeader.Reading.complete(
            byteCount: out.count,
            try Self.client("192.0.2.1", 1)
        )
        try expectEqual(ProxyHeader.read(out.span), whole)
    }
}
