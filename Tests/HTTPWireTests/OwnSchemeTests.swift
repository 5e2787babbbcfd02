import Expectations
import HTTPWire
import Testing

/// The gateway's own scheme in what an origin sends.
@Suite struct OwnSchemeTests {
    private func passed(_ values: [String]) throws -> [String] {
        let lines = values.map { "WWW-Authenticate: \($0)\r\n" }.joined()
        let text = "HTTP/1.1 401 No\r\nX-One: 1\r\n\(lines)X-Two: 2\r\n\r\n"
        let bytes = Array(text.utf8)
        let head = try ResponseHead.reading(text)
        var out: [UInt8] = []
        HeadWriter.beginResponse(
            head,
            bytes.span,
            options: HeadWriter.ResponseOptions(),
            into: &out
        )
        HeadWriter.endHead(into: &out)
        let written = String(decoding: out, as: UTF8.self)
        #expect(written.contains("X-One: 1\r\n") && written.contains("X-Two: 2\r\n"))
        return written.split(separator: "\r\n")
            .filter { $0.lowercased().hasPrefix("www-authenticate:") }
            .map { String($0.dropFirst("WWW-Authenticate: ".count)) }
    }

    @Test(arguments: [
        [#"Basic realm="a, b""#], ["Negotiate"], ["Bearer", "Basic realm=x"],
        [#"Basic realm="AppAttest, next=x""#], ["Digest a=1, b=2, Bearer"], ["Negotiate YII/+a=="],
        [#"Basic realm="\"AppAttest\"""#], ["XAppAttest a=1"], ["Basic realm=AppAttest"],
    ])
    func `other schemes pass as they are`(values: [String]) throws {
        try expectEqual(passed(values), values)
    }

    @Test(arguments: [
        [#"AppAttest error="key-unknown", next="enrol""#], ["APPATTEST"], ["appattest a=b"],
        [" AppAttest , , error=x"], ["AppAttest abc=="], ["AppAttest error=x", "next=enrol"],
        [#"AppAttest error="no end"#], [#""AppAttest" error=x"#], ["AppAttest; error=x"],
        [#"Basic realm="x, AppAttest error=y"#],
        // Some readers take each word for a new scheme.
        [#"Basic AppAttest error="key-unknown", next="enrol""#],
        [#"Basic realm="x" AppAttest error="key-unknown", next="enrol""#],
        ["Basic AppAttest", "error=x"],
    ])
    func `an origin can't tell a client what to do with its key`(values: [String]) throws {
        try expectEqual(passed(values), [])
    }

    @Test(arguments: [
        (
            [#"Basic realm="a, b", AppAttest error="x", next="enrol", Bearer scope="c d""#],
            [#"Basic realm="a, b", Bearer scope="c d""#]
        ),
        (["AppAttest error=x, Negotiate YII="], ["Negotiate YII="]),
        (["Digest a=1, b=2 AppAttest error=x, next=y, Bearer"], ["Digest a=1, Bearer"]),
        (
            ["Digest a=1, b=\"2, 3\", appattest", "c=4, Basic realm=d"],
            [
                "Digest a=1, b=\"2, 3\"", "Basic realm=d",
            ]
        ),
        (["Digest a=1", "b=2", "AppAttest c=3"], ["Digest a=1", "b=2"]),
        (["AppAttest \"no end", "next=enrol", "Basic realm=x"], ["Basic realm=x"]),
    ])
    func `the other challenges of a list pass without it`(
        values: [String],
        kept: [String]
    ) throws {
        try expectEqual(passed(values), kept)
    }
}
