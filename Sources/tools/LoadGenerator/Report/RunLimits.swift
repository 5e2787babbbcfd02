import Histogram

/// The limits of `--fail-if`: a run that exceeds one of them has failed.
package struct RunLimits: Equatable, Sendable {
    private var limits: [Limit] = []

    /// The value that a limit is about.
    struct Subject: Equatable, Sendable {
        /// A count, or a percentile.
        let name: String
        /// The number of the stage, from 1; `nil` for the whole run.
        let stage: Int?

        /// `p99`, `stage 2: p99`.
        var text: String { stage.map { "stage \($0): \(name)" } ?? name }
    }

    private struct Limit: Equatable, Sendable {
        let subject: Subject
        let most: UInt64
        /// `most` as it was given.
        let text: String
    }

    /// A limit, and what a run has of it.
    struct Check: Equatable {
        let subject: String
        let found: String
        let most: String
        let isExceeded: Bool
    }

    /// Counts of the summary. The first two may not grow unless a limit says otherwise.
    private static let counts = ["wrong", "failed", "replays", "backlog"]

    /// No wrong answer, and no failure.
    package static let standard = RunLimits([])

    private init(_ given: [Limit]) {
        limits = given
        for name in Self.counts.prefix(2) {
            let subject = Subject(name: name, stage: nil)
            if given.contains(where: { $0.subject == subject }) { continue }
            limits.append(Limit(subject: subject, most: 0, text: "0"))
        }
    }

    /// Reads `p99>20ms,wrong>0,2:p99>50ms`: percentiles of the latency with a time, and counts, of
    /// the whole run or of a stage.
    ///
    /// `nil` for another name, a repeated one, and a value that is no time or no whole number.
    package init?(_ text: String) {
        var given: [Limit] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: ">", omittingEmptySubsequences: false)
            guard words.count == 2, let subject = Self.subject(words[0]) else { return nil }
            let value = String(words[1])
            let isCount = Self.counts.contains(subject.name)
            guard let most = isCount ? UInt64(value) : LoadTime(value)?.nanoseconds,
                !given.contains(where: { $0.subject == subject })
            else { return nil }
            given.append(Limit(subject: subject, most: most, text: value))
        }
        self.init(given)
    }

    /// Reads `p99`, `2:p99`.
    private static func subject(_ text: Substring) -> Subject? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let last = parts.last else { return nil }
        let name = String(last)
        guard counts.contains(name) || Summary.percentiles.contains(where: { $0.name == name })
        else { return nil }
        guard parts.count == 2 else { return Subject(name: name, stage: nil) }
        guard parts[0].allSatisfy({ $0.isASCII && $0.isNumber }), let stage = Int(parts[0]),
            (1...StageSchedule.stagesMax).contains(stage)
        else { return nil }
        return Subject(name: name, stage: stage)
    }

    /// What is wrong with the limits for a run with `count` stages; `nil` for nothing.
    package func problem(withStages count: Int) -> String? {
        let highest = limits.compactMap(\.subject.stage).max() ?? 0
        guard highest > count else { return nil }
        let stages = count == 1 ? "1 stage" : "\(count) stages"
        return "--fail-if names stage \(highest), and --stage gives \(stages)"
    }

    /// The limits that a run exceeds, in words.
    package func exceeded(by summary: Summary) -> [String] {
        checks(summary.value(of:)).filter(\.isExceeded).map {
            "\($0.subject) is \($0.found), more than \($0.most)"
        }
    }

    /// All limits.
    ///
    /// - value: a count, or nanoseconds of a percentile.
    func checks(_ value: (Subject) -> UInt64) -> [Check] {
        limits.map { limit in
            let found = value(limit.subject)
            let isCount = Self.counts.contains(limit.subject.name)
            return Check(
                subject: limit.subject.text,
                found: isCount ? Figures.count(found) : Figures.latency(found),
                most: limit.text,
                isExceeded: found > limit.most
            )
        }
    }
}

extension Summary {
    /// The value that a limit is about.
    func value(of subject: RunLimits.Subject) -> UInt64 {
        if let stage = subject.stage {
            let stages = measurements.stages
            return stages.indices.contains(stage - 1)
                ? Self.value(of: subject.name, in: stages[stage - 1]) : 0
        }
        return switch subject.name {
        case "wrong": deviationCount
        case "failed": measurements.failureCount
        case "replays": measurements[.admittedReplays]
        case "backlog": measurements[.backlogMax]
        default: Self.percentile(subject.name, of: allLatencies)
        }
    }

    private static func value(of name: String, in stage: Measurements.Stage) -> UInt64 {
        switch name {
        case "wrong": stage.wrong
        case "failed": stage.failed
        case "replays": stage.admittedReplays
        case "backlog": stage.backlogMax
        default: stage.latencies.map { percentile(name, of: $0) } ?? 0
        }
    }

    private static func percentile(_ name: String, of latencies: Measurements.Latencies) -> UInt64 {
        percentiles.first { $0.name == name }.map { latencies.valueAtPercentile($0.percent) } ?? 0
    }
}
