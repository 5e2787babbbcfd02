/// The report as one page of HTML: a row for each case, a column for each client.
package struct ReportPage {
    private let reports: [ProvingReport]

    /// - reports: one for each client, in the order of the columns.
    package init(_ reports: [ProvingReport]) { self.reports = reports }

    /// All of it: no other file and no network is needed.
    package var html: String {
        """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>Proving ground</title>
        <style>\(Self.style)</style>
        <h1>Proving ground</h1>
        <p>A row for each case, a column for each client. What failed can be opened.
        \(summary)
        <table>
        <thead><tr><th>Case\(reports.map { "<th>\(Self.column($0))" }.joined())</thead>
        \(groups.map(section).joined())
        </table>
        </html>

        """
    }

    private static let style = """
        :root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; }
        @media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; } }
        body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto;
          padding: 0 1rem; }
        table { border-collapse: collapse; width: 100%; }
        th, td { border-top: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
          vertical-align: top; }
        thead th { position: sticky; top: 0; background: Canvas; }
        td:not(:first-child) { white-space: nowrap; }
        td details { white-space: normal; max-width: 30rem; }
        .group th { padding-top: 1.4rem; font-size: 1.1em; }
        .passed { color: var(--good); }
        .failed { color: var(--bad); font-weight: 600; }
        .not-offered { opacity: .6; }
        small { display: block; opacity: .75; }
        """

    private var summary: String {
        let lines = reports.map { report in
            "<li>\(Self.column(report)): \(report.passed) passed, \(report.failed) failed, "
                + "\(report.notOffered) not offered"
        }
        return "<ul>\(lines.joined())</ul>"
    }

    private static func column(_ report: ProvingReport) -> String {
        "\(escaped(report.client)), \(escaped(report.platform))"
    }

    /// The groups in the order in which they were played.
    private var groups: [String] {
        var found: [String] = []
        for row in reports.flatMap(\.rows) where !found.contains(row.group) {
            found.append(row.group)
        }
        return found
    }

    private func section(_ group: String) -> String {
        var rows: [ProvingReport.Row] = []
        for row in reports.flatMap(\.rows) where row.group == group {
            if !rows.contains(where: { $0.path == row.path }) { rows.append(row) }
        }
        let heading = "<tr class=\"group\"><th colspan=\"\(reports.count + 1)\">"
        return "\(heading)\(Self.escaped(group))\(rows.map(line).joined())\n"
    }

    private func line(_ row: ProvingReport.Row) -> String {
        let cells = reports.map { report in
            report.rows.first { $0.path == row.path }.map(Self.cell) ?? "<td>"
        }
        return """

            <tr id="\(Self.escaped(row.path))"><td>\(Self.escaped(row.name))\
            <small>\(Self.escaped(row.path)) · machine.md#\(Self.escaped(row.section)) · \
            \(Self.escaped(row.why))</small>\(cells.joined())
            """
    }

    private static func cell(_ row: ProvingReport.Row) -> String {
        switch row.ending {
        case .passed: return "<td class=\"passed\">passed<small>\(row.seconds) s</small>"
        case .notOffered:
            return "<td class=\"not-offered\">not offered"
                + "<small>\(escaped(row.missing.joined(separator: ", ")))</small>"
        case .failed:
            let misses = row.misses.map { miss in
                "<p>\(escaped(miss.step))<br>expected \(escaped(miss.expected))"
                    + "<br>seen \(escaped(miss.seen))"
            }
            return "<td><details><summary class=\"failed\">failed</summary>"
                + "\(misses.joined())</details>"
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }
}
