import Expectations
import Foundation
import Services
import Testing
import Verification

/// The specification of the scheme: its test vectors and its tables are those of this build.
///
///     PORTCULLIS_MAKE_VECTORS=1 swift test --filter SpecificationTests
///
/// writes the vectors.
@Suite(.serialized) struct SpecificationTests {
    private static let isMaking =
        ProcessInfo.processInfo.environment["PORTCULLIS_MAKE_VECTORS"] != nil
    private static let file = Repository.folder
        .appending(path: "Sources/docs/spec/draft-portcullis-httpauth-app-attest.mkd")
    /// The vectors stand between these two lines.
    private static let start = "<!-- vectors, written by SpecificationTests -->\n"
    private static let end = "\n<!-- end of vectors -->\n"
    private static let linesMax = 900
    private static let columnsMax = 160

    private let text: String

    init() throws {
        text = try String(contentsOf: Self.file, encoding: .utf8)
    }

    /// The text before the vectors, the vectors, and the text after them.
    private func pieces() throws -> (before: String, vectors: String, after: String) {
        let start = try #require(text.firstRange(of: Self.start))
        let end = try #require(text[start.upperBound...].firstRange(of: Self.end))
        return (
            String(text[..<start.upperBound]), String(text[start.upperBound..<end.lowerBound]),
            String(text[end.lowerBound...])
        )
    }

    @Test(.enabled(if: isMaking, "PORTCULLIS_MAKE_VECTORS is not set"))
    func `the vectors are written`() throws {
        let (before, _, after) = try pieces()
        let vectors = try SpecificationVectors().text
        try Data((before + vectors + after).utf8).write(to: Self.file)
    }

    @Test func `the vectors are what client and gateway compute`() throws {
        let (written, computed) = (try pieces().vectors, try SpecificationVectors().text)
        expectEqual(written, computed)
    }

    @Test func `the specification keeps its size`() {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count - 1 <= Self.linesMax)
        expectEqual(lines.filter { $0.count > Self.columnsMax }, [])
    }

    /// The rows of the table below a heading, each as its cells.
    private func rows(below heading: String) throws -> [[String]] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix(heading) })
        return lines[(start + 1)...].prefix { !$0.hasPrefix("#") }
            .filter { $0.hasPrefix("| ") }
            .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
            .filter { $0.count == 4 && $0[0] != "Reason" }
    }

    @Test func `a reason has the status and the next step of the code`() throws {
        let tables: [(heading: String, outcome: (Refusal) -> LocalOutcome)] = [
            ("## Reasons of Requests", LocalOutcome.refused),
            ("## Reasons of Enrolments", LocalOutcome.notEnrolled),
        ]
        for (heading, outcome) in tables {
            let rows = try rows(below: heading)
            #expect(rows.count > 10, "\(heading)")
            for row in rows {
                let refusal = try #require(Refusal(rawValue: row[0]), "\(heading): \(row[0])")
                let local = outcome(refusal).row
                expectEqual(row[1], String(local.status), "\(row[0])")
                expectEqual(row[2], local.nextStep.rawValue, "\(row[0])")
            }
        }
    }
}
