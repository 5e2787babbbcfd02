package import Foundation

/// What came of all cases with one client.
package struct ProvingReport: Codable, Sendable {
    /// Something that was not as expected.
    package struct Miss: Codable, Sendable, Hashable {
        /// Where: `line 12: GET /orders/1`, or `the whole case`.
        package let step: String
        package let expected: String
        package let seen: String
        /// The line in the case's file; 0 for none.
        package let line: Int
    }

    /// How a case ended.
    package enum Ending: String, Codable, Sendable {
        case passed, failed
        case notOffered = "not-offered"
    }

    /// A case.
    package struct Row: Codable, Sendable {
        package let group: String
        package let file: String
        package let name: String
        package let why: String
        package let section: String
        package let ending: Ending
        package let seconds: Double
        package let misses: [Miss]
        /// What the client does not offer, of what the case needs.
        package let missing: [String]

        /// As `--only` names it.
        package var path: String { "\(group)/\(file)" }

        static func played(_ proving: ProvingCase, _ misses: [Miss], seconds: Double) -> Row {
            let ending = misses.isEmpty ? Ending.passed : .failed
            return Row(proving, ending, seconds: seconds, misses: misses)
        }

        static func notOffered(_ proving: ProvingCase, _ missing: [String]) -> Row {
            Row(proving, .notOffered, missing: missing)
        }

        private init(
            _ proving: ProvingCase,
            _ ending: Ending,
            seconds: Double = 0,
            misses: [Miss] = [],
            missing: [String] = []
        ) {
            (group, file, name) = (proving.group, proving.file, proving.name)
            (why, section) = (proving.why, proving.section)
            (self.ending, self.seconds) = (ending, (seconds * 100).rounded() / 100)
            (self.misses, self.missing) = (misses, missing)
        }
    }

    package let client: String
    package let platform: String
    package private(set) var rows: [Row] = []

    init(client: String, platform: String) {
        (self.client, self.platform) = (client, platform)
    }

    package var passed: Int { count(.passed) }
    package var failed: Int { count(.failed) }
    package var notOffered: Int { count(.notOffered) }

    private func count(_ ending: Ending) -> Int { rows.count { $0.ending == ending } }

    mutating func add(_ row: Row, _ tell: (Row) -> Void) {
        rows.append(row)
        tell(row)
    }

    /// The report as a file of JSON.
    package func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    /// A report out of such a file.
    package init(json: Data) throws { self = try JSONDecoder().decode(Self.self, from: json) }
}
