import Histogram
package import Signatures

/// The result of a run as one page of HTML. It needs no other file, no network and no script.
package struct HTMLReport {
    private let summary: Summary
    private let checks: [RunLimits.Check]
    private let startedAt: UnixTime
    private let version: String

    /// - Parameters:
    ///   - summary: the result.
    ///   - limits: those that decide whether the run has failed.
    ///   - startedAt: when the run began.
    ///   - version: of this program.
    package init(_ summary: Summary, limits: RunLimits, startedAt: UnixTime, version: String) {
        self.summary = summary
        checks = limits.checks(summary.value(of:))
        (self.startedAt, self.version) = (startedAt, version)
    }

    /// The page.
    package var html: String {
        var out = HTMLWriter()
        out.constant("<!doctype html>\n")
        out.element("html", ["lang": "en"]) { out in
            writeHead(in: &out)
            out.element("body") { out in
                writeResult(in: &out)
                writePictures(in: &out)
                writeTables(in: &out)
                out.element("footer", text: "portcullis-load \(version)")
            }
        }
        return out.html + "\n"
    }

    private var request: String {
        "\(summary.plan.request.method) \(summary.plan.request.url.target)"
    }

    private func writeHead(in out: inout HTMLWriter) {
        out.element("head") { out in
            out.void("meta", ["charset": "utf-8"])
            out.void("meta", ["name": "viewport", "content": "width=device-width"])
            // A mistake in the page could load nothing and run nothing.
            out.void(
                "meta",
                [
                    "http-equiv": "Content-Security-Policy",
                    "content": "default-src 'none'; style-src 'unsafe-inline'",
                ]
            )
            out.element("title", text: "\(request): load")
            out.element("style") { $0.constant(Self.style) }
        }
    }

    private func writeResult(in out: inout HTMLWriter) {
        out.element("h1", text: request)
        let plan = summary.plan
        out.element("p", ["class": "dim"], text: "\(plan.request.host), \(startedAt.iso8601)")
        out.element("p", ["class": "dim"], text: plan.loadText)
        let isFailed = checks.contains(where: \.isExceeded)
        out.element("div", ["class": isFailed ? "failed" : "passed"]) { out in
            out.element("b", text: isFailed ? "✗ failed" : "✓ passed")
            out.element("p", text: summary.verdict)
            for check in checks where check.isExceeded {
                out.element(
                    "p",
                    text: "\(check.subject) is \(check.found), more than \(check.most)"
                )
            }
            if summary.wasInterrupted {
                out.element("p", text: "interrupted: this is part of the run")
            }
            if let saturation = summary.saturation {
                out.element(
                    "p",
                    text: "the load generator had too little of the machine: \(saturation)"
                )
            }
        }
        let latencies = summary.allLatencies
        let percentiles = ["p50", "p99", "max"]
        let texts = zip(Summary.percentiles.map(\.name), Summary.texts(latencies))
            .filter { percentiles.contains($0.0) }
        let counts: [(String, UInt64)] = [
            ("sent", summary.measurements.sent), ("wrong", summary.deviationCount),
            ("failed", summary.measurements.failureCount),
        ]
        out.element("dl", ["class": "tiles"]) { out in
            tile("answers/s", Figures.fixed(summary.throughput, 1), in: &out)
            for (name, text) in texts { tile(name, text, in: &out) }
            for (name, count) in counts { tile(name, Figures.count(count), in: &out) }
        }
    }

    private func tile(_ name: String, _ text: String, in out: inout HTMLWriter) {
        out.element("div") { out in
            out.element("dt", text: name)
            out.element("dd", text: text)
        }
    }

    private func writePictures(in out: inout HTMLWriter) {
        let latencies = summary.allLatencies
        let marks = [("p50", 50.0), ("p99", 99), ("p99.9", 99.9)].map {
            (name: $0.0, latency: latencies.valueAtPercentile($0.1))
        }
        LatencyBars(latencies).write(marks: marks, in: &out)
        var from = Double(summary.plan.options.pacing.warmUp) / 1e9
        var stages: [(name: String, from: Double)] = []
        for (index, stage) in summary.stages.enumerated() {
            stages.append(("\(index + 1)", from))
            from += Double(stage.plan.length.nanoseconds) / 1e9
        }
        TimeLine(summary.seconds, stages: stages).write(in: &out)
    }
}

// Tables.
extension HTMLReport {
    private func writeTables(in out: inout HTMLWriter) {
        table("Limits", columns: ["limit", "found", "at most", ""], figures: 1...2, in: &out) {
            checks.map { check in
                [check.subject, check.found, check.most, check.isExceeded ? "✗ exceeded" : "✓"]
            }
        }
        let percentiles = Summary.percentiles.map(\.name)
        let titles = ["stage", "sent", "as expected", "wrong", "failed", "answers/s"]
        table("Stages", columns: titles + percentiles, figures: 1...11, in: &out) {
            summary.stages.enumerated().map { number, stage in
                let counts = stage.counts
                return ["\(number + 1)  \(stage.plan.text)"]
                    + [counts.sent, counts.asExpected, counts.wrong, counts.failed]
                    .map(Figures.count) + [Figures.fixed(stage.throughput, 1)]
                    + Summary.texts(counts.latencies)
            }
        }
        // What a narrow screen has no room for is last.
        let found = ["request", "found", "count", "", "expected"]
        table("Outcomes", columns: found, figures: 2...2, in: &out) { outcomes }
        let latencyTitles = ["request", "sent", "as expected"] + percentiles
        table("Latencies", columns: latencyTitles, figures: 1...8, in: &out) {
            summary.sentRows.map { sending, row in
                [sending.title] + [row.sent, row.asExpected].map(Figures.count)
                    + Summary.texts(summary.latencies(row))
            }
        }
        table("The run", columns: ["", ""], figures: nil, in: &out) {
            (summary.description + summary.figures + summary.findings).map { [$0.name, $0.text] }
        }
    }

    private var outcomes: [[String]] {
        let counts = summary.measurements.outcomes
        let rest =
            counts.unlisted > 0 ? [["other answers", "", Figures.count(counts.unlisted)]] : []
        return rest
            + counts.sorted.map { outcome, count in
                let wrong = outcome.status == 0 ? "✗ failed" : "✗ wrong"
                return [
                    outcome.sending.title, outcome.text, Figures.count(count),
                    outcome.isAsExpected ? "✓" : wrong,
                    summary.plan.expectation(of: outcome.sending).text,
                ]
            }
    }

    /// Writes a table, unless it has no rows.
    ///
    /// - figures: the columns that are aligned to the right.
    private func table(
        _ title: String,
        columns names: [String],
        figures: ClosedRange<Int>?,
        in out: inout HTMLWriter,
        rows: () -> [[String]]
    ) {
        let rows = rows()
        guard !rows.isEmpty else { return }
        out.element("h2", text: title)
        out.element("div", ["class": "scroll"]) { out in
            out.element("table") { out in
                line("th", of: names, figures: figures, in: &out)
                for row in rows { line("td", of: row, figures: figures, in: &out) }
            }
        }
    }

    private func line(
        _ cell: StaticString,
        of texts: [String],
        figures: ClosedRange<Int>?,
        in out: inout HTMLWriter
    ) {
        out.element("tr") { out in
            for (index, text) in texts.enumerated() {
                let isWrong = text.hasPrefix("✗")
                let style = isWrong ? "wrong" : figures?.contains(index) == true ? "figure" : "text"
                out.element(cell, ["class": style], text: text)
            }
        }
    }
}
