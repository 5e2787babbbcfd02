import Expectations
import Testing

/// What `Tests/Interoperability/h2spec` makes of reports of h2spec, as h2spec has written them, and
/// as they would be if the gateway did something else.
@Suite struct ConformanceTests {
    /// A recorded report after this edit, compared with the list: the lines, then the status.
    private static func lines(_ transport: String, _ edit: String = "") throws -> [String] {
        let script = #"""
            set -euo pipefail
            folder=$(mktemp -d)
            trap 'rm -rf -- "$folder"' EXIT
            cd Tests/Interoperability
            sed -E '\#(edit)' recorded/h2spec-\#(transport).xml > "$folder/report.xml"
            status=0
            ./h2spec --report "\#(transport)=$folder/report.xml" 2>&1 || status=$?
            echo "status: $status"
            """#
        return try WorkflowTests.printed(by: script).split(separator: "\n").map(String.init)
    }

    @Test(arguments: [("clear", 140, 6), ("tls", 141, 5)])
    func `the gateway's reports agree with the list`(
        transport: String,
        passed: Int,
        listed: Int
    ) throws {
        let text = "h2spec, \(transport): \(passed) of 146 cases pass, \(listed) listed, 0 wrong"
        try expectEqual(Self.lines(transport), [text, "status: 0"])
    }

    @Test func `a case that fails and is not listed is wrong`() throws {
        // As nghttp2 alone answers it: not at all. The text is not escaped, and may have a bracket.
        let name = "Sends a PRIORITY frame with 0x0 stream identifier"
        let error = "<error>GOAWAY Frame (Error Code: PROTOCOL_ERROR)\\nTimeout -> < \\&</error>"
        let lines = try Self.lines("tls", "s|(classname=\"\(name)\"[^>]*>)|\\1\(error)|")
        expectEqual(lines.first, "WRONG tls http2/6.3: \(name): fails: Timeout -> < &")
        let counts = "h2spec, tls: 140 of 146 cases pass, 5 listed, 1 wrong"
        expectEqual(lines.dropFirst().first, counts)
        expectEqual(lines.last, "status: 1")
    }

    @Test func `a case that is listed and passes is wrong`() throws {
        let name = "closed: Sends a HEADERS frame"
        let lines = try Self.lines(
            "clear",
            "/classname=\"\(name)\"/,/testcase>/{ s|<error>|<!-- |; s|</error>| -->| }"
        )
        let wrong = "WRONG clear http2/5.1: \(name): passes; take it out of h2spec.tsv"
        expectEqual(lines.first, wrong)
        expectEqual(lines.last, "status: 1")
    }

    @Test func `a case that is listed and is none of the report is wrong`() throws {
        let lines = try Self.lines("tls", "s/closed: Sends a DATA frame\"/closed: renamed\"/")
        let name = "tls http2/5.1: closed: Sends a DATA frame"
        #expect(lines.contains("WRONG \(name): is listed, and no case of the report"), "\(lines)")
        #expect(lines.contains { $0.hasPrefix("WRONG tls http2/5.1: closed: renamed: fails: ") })
        expectEqual(lines.last, "status: 1")
    }

    @Test(arguments: [
        ("/package=\"generic.5\".*testcase>$/d", "h2spec: the report has 131 cases of 146"),
        ("$d", "h2spec: the report is no XML: "),
        (
            "s/Sends a GET request/Sends a HEAD request/",
            "h2spec: the report has a case twice: generic/4 Sends a HEAD request"
        ),
    ])
    func `a report that says too little is compared with nothing`(
        edit: String,
        said: String
    ) throws {
        let lines = try Self.lines("clear", edit)
        #expect(lines.first?.hasPrefix(said) == true, "\(lines)")
        expectEqual(lines.last, "status: 2")
    }
}
