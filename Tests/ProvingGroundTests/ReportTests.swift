import Expectations
import Foundation
import ProvingGround
import Testing

/// The report, in its three forms.
@Suite struct ReportTests {
    private func report(_ client: String, _ ending: String) throws -> ProvingReport {
        let misses = """
            [{"step": "line 7: GET /a", "expected": "keys: 1", "seen": "2 <b>", "line": 7}]
            """
        let row = """
            {"group": "signing", "file": "one", "name": "A claim", "why": "A reason",
             "section": "the-key", "ending": "\(ending)", "seconds": 1.25,
             "misses": \(ending == "failed" ? misses : "[]"),
             "missing": \(ending == "not-offered" ? #"["clock"]"# : "[]")}
            """
        let text = #"{"client": "\#(client)", "platform": "ios", "rows": [\#(row)]}"#
        return try ProvingReport(json: Data(text.utf8))
    }

    @Test func `a report is read as it was written`() throws {
        let written = try report("swift", "failed")
        let read = try ProvingReport(json: written.json())
        expectEqual(try read.json(), try written.json())
        expectEqual(read.failed, 1)
    }

    @Test func `the page has a row for each case and a column for each client`() throws {
        let reports = [
            try report("swift", "passed"), try report("kotlin", "failed"),
            try report("python", "not-offered"),
        ]
        let page = ReportPage(reports).html
        expectEqual(page.components(separatedBy: "<tr id=").count - 1, 1)
        for text in [
            "<th>swift, ios", "<th>kotlin, ios", "<th>python, ios", "expected keys: 1",
            "seen 2 &lt;b&gt;", "not offered<small>clock", "machine.md#the-key",
        ] {
            #expect(page.contains(text), "no \(text)")
        }
        #expect(!page.contains("://"), "the page asks for something else")
    }

    @Test func `the end of a run says what was expected, what was seen and where to read`() throws {
        let summary = try report("swift", "failed").summary
        for text in [
            "signing/one: A claim", "line 7: GET /a", "expected  keys: 1", "seen      2 <b>",
            "machine.md#the-key", "swift on ios: 0 passed, 1 failed, 0 not offered",
        ] {
            #expect(summary.contains(text), "no \(text)")
        }
    }
}
