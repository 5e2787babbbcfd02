package import Encodings

/// The output of `portcullis doctor`.
package struct DoctorReport: Sendable {
    /// The user's name of the file.
    package let file: String
    package let findings: [Finding]

    init(file: String, _ findings: [Finding]) {
        self.file = file
        self.findings = findings
    }

    private func count(_ severity: Finding.Severity) -> Int {
        findings.count { $0.severity == severity }
    }

    /// 1 when there is an error. Warnings don't change it.
    package var exitStatus: Int32 { count(.error) > 0 ? 1 : 0 }

    /// A line for each finding, with the next step below it, and a summary.
    package var text: String {
        var lines: [String] = []
        for finding in findings {
            let severity = Self.padded(finding.severity.rawValue, 8)
            let subject = Self.padded(finding.subject.rawValue, 14)
            lines.append("\(severity) \(subject) \(finding.found)")
            if !finding.next.isEmpty { lines.append("    next: \(finding.next)") }
        }
        lines.append(
            "\(file): \(Self.count(count(.error), "error")), "
                + Self.count(count(.warning), "warning")
        )
        return lines.joined(separator: "\n") + "\n"
    }

    /// The report for scripts.
    package var json: JSONValue {
        .object([
            .init("file", .string(file)), .init("errors", .number(Int64(count(.error)))),
            .init("warnings", .number(Int64(count(.warning)))),
            .init(
                "findings",
                .array(
                    findings.map { finding in
                        .object([
                            .init("severity", .string(finding.severity.rawValue)),
                            .init("subject", .string(finding.subject.rawValue)),
                            .init("found", .string(finding.found)),
                            .init("next", .text(finding.next.isEmpty ? nil : finding.next)),
                        ])
                    }
                )
            ),
        ])
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
}
