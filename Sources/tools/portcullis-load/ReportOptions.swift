import ArgumentParser
import LoadGenerator
import Signatures
import Telemetry

/// What a run fails for, and what it leaves behind.
struct ReportOptions: ParsableArguments {
    @Option(
        help: """
            The run fails above these: 'p99>20ms,wrong>0'; also failed, replays, backlog. \
            2:p99>50ms is for the second --stage.
            """,
        transform: LoadOptionText.limits
    )
    var failIf: RunLimits?

    @Flag(help: "Show no progress.")
    var quiet = false

    @Option(
        help: "Show progress as a line each time this has passed, such as 10s.",
        transform: LoadOptionText.time
    )
    var progress: LoadTime?

    @Option(help: "Write the summary as JSON to this file.")
    var json: String?

    @Option(help: "Write the latencies to this file, as a percentile distribution of HdrHistogram.")
    var hgrm: String?

    @Option(help: "Write a report for a browser to this file.")
    var html: String?

    /// How the run is shown while it lasts: on a terminal by one line that changes, elsewhere only
    /// where it is asked for.
    func style() throws(LoadError) -> Progress.Style {
        guard let progress else {
            let isLive = DiagnosticOutput.isTerminal && !quiet
            return isLive ? .live { DiagnosticOutput.columns } : .silent
        }
        guard !quiet else { throw LoadError("--quiet with --progress: give one of them") }
        let seconds = progress.nanoseconds / 1_000_000_000
        guard seconds > 0, seconds * 1_000_000_000 == progress.nanoseconds else {
            throw LoadError("--progress \(progress): use whole seconds")
        }
        return .lines(every: Int(clamping: seconds))
    }

    /// Checks what can be wrong before the run.
    func check(_ pacing: Pacing) throws(LoadError) {
        if let problem = failIf?.problem(withStages: pacing.stages.count) {
            throw LoadError(problem)
        }
    }

    /// Writes the files.
    ///
    /// - startedAt: when the run began.
    /// - Returns: the limits that the run exceeds.
    func write(_ summary: Summary, startedAt: UnixTime) throws(LoadError) -> [String] {
        let limits = failIf ?? .standard
        if let json { try TextFile.write(json, summary.json) }
        if let hgrm { try TextFile.write(hgrm, summary.percentileDistribution) }
        if let html {
            let report = HTMLReport(
                summary,
                limits: limits,
                startedAt: startedAt,
                version: ProgramVersion.text
            )
            try TextFile.write(html, report.html)
        }
        return limits.exceeded(by: summary)
    }
}
