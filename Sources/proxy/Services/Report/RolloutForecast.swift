import AppAttest
import Encodings
import KeyStore
package import Rules
import Verification

/// An estimate from the last hour, for a change after which a rule refuses more clients.
package struct RolloutForecast: Sendable {
    /// Above this share of a rule's requests or installs, a change needs confirmation: 2 %. If the
    /// rule has a guard, the guard's own share applies instead.
    package static let limitDefault = Share(millionths: 20_000) ?? .none
    /// Fewer requests than this say too little. Where no more than half would be refused, fewer
    /// refused ones than this need no confirmation, either: a few may be chance.
    static let countMin = GuardRule.refusedMin
    /// The most builds that are named.
    private static let buildsMax = 5

    /// Why an order needs confirmation. Raw values are API: add, do not rename.
    package enum Doubt: String, Sendable {
        /// It would refuse most requests or installs, or more than the rule's guard allows.
        case manyRefused = "many-refused"
        /// So few requests were judged that they don't say whom it would refuse.
        case fewRequests = "few-requests"
        /// No request was judged.
        case noRequests = "no-requests"
    }

    let rule: String
    private let ordered: Share
    private let limit: Share
    /// The rule's last hour.
    private let part: Report.Part
    /// The smallest share with counts that includes the ordered one.
    private let counted: (percent: Int, share: Share)
    private let step: RuleCounts.Step

    /// `nil` where the change refuses no more clients.
    ///
    /// - rule: its id.
    /// - report: a report over an hour. Where it does not have the rule, no request of it was
    ///   judged.
    /// - now, next: the share for which it refuses, before the change and after.
    /// - limit: the limit of the rule's guard.
    package init?(
        _ rule: String,
        _ report: Report,
        from now: Share,
        to next: Share,
        limit: Share?
    ) {
        guard next > now, let place = RuleCounts.shares.firstIndex(where: { $0.share >= next })
        else { return nil }
        self.rule = rule
        ordered = next
        self.limit = limit ?? Self.limitDefault
        part =
            report.entries.first { $0.id == rule }?.parts.first
            ?? Report.Part(window: .hour, seconds: 0, counts: RuleCounts())
        counted = RuleCounts.shares[place]
        step = part.counts.steps[place]
    }

    package var asksConfirmation: Bool { doubt != nil }

    /// Why it needs confirmation; `nil` where it needs none.
    package var doubt: Doubt? {
        guard requests > 0 else { return .noRequests }
        let refusedInstalls = UInt64(clamping: step.installCount)
        guard !isMany(step.requests, of: requests),
            !isMany(refusedInstalls, of: UInt64(clamping: installs))
        else { return .manyRefused }
        return requests < UInt64(Self.countMin) ? .fewRequests : nil
    }

    /// The rule's requests in the last hour.
    var requests: UInt64 { part.counts.requests }

    private var installs: Int { max(part.counts.installCount, step.installCount) }

    private func isMany(_ count: UInt64, of all: UInt64) -> Bool {
        // Most of a few are many, too.
        guard count >= UInt64(Self.countMin) else { return count > all / 2 }
        return Double(count) * 1e6 > Double(all) * Double(limit.millionths)
    }

    /// The requests of each build that were not verified, the builds with the most of them first.
    private var builds: [(name: String, failed: UInt64, all: UInt64)] {
        var builds: [String: (failed: UInt64, all: UInt64)] = [:]
        for group in part.counts.groups {
            let name = group.build.text
            let cells = group.cells
            let failed = cells[.missing] &+ cells[.unsupported] &+ cells[.invalid]
            let before = builds[name] ?? (0, 0)
            builds[name] = (before.failed &+ failed, before.all &+ cells.total)
        }
        let all = builds.map { ($0.key, $0.value.failed, $0.value.all) }.filter { $0.1 > 0 }
        return Array(all.sorted { ($1.1, $0.0) < ($0.1, $1.0) }.prefix(Self.buildsMax))
    }

    /// The text for people, one line each.
    package var lines: [String] {
        let counts = part.counts
        let span = "\(part.window.text) (\(Report.Part.time(part.seconds)))"
        guard counts.requests > 0 else {
            return ["\(span): no request was judged, so nothing says whom \(ordered.text) refuses"]
        }
        let whom = counted.share == ordered ? "" : ", the next share that is counted,"
        let shares = (
            Report.Part.percent(step.requests, of: counts.requests),
            Report.Part.percent(UInt64(clamping: step.installCount), of: UInt64(clamping: installs))
        )
        var lines = [
            "\(span): \(counted.percent)%\(whom) would have refused \(step.requests) of "
                + "\(counts.requests) requests (\(shares.0)): \(step.installCount) of about "
                + "\(installs) installs (\(shares.1)), and \(step.addressCount) addresses "
                + "without a known key"
        ]
        if !builds.isEmpty {
            let texts = builds.map { "\($0.name): \($0.failed) of \($0.all)" }
            lines.append("not verified, by build: " + texts.joined(separator: ", "))
        }
        return lines
    }

    /// Member names are API: add, do not rename.
    ///
    /// - order: the version of the fleet's orders; `nil` without a fleet.
    func json(order: Int64?) -> [UInt8] {
        var out = JSONWriter(.compact)
        out.object { out in
            if let order { out.member("order", order) }
            write(into: &out)
            out.texts("lines", lines)
        }
        return out.line
    }

    fileprivate func write(into out: inout JSONWriter) {
        out.member("rule", rule)
        out.member("to", ordered.text)
        out.member("confirm", asksConfirmation ? "needed" : "none")
        out.member("doubt", doubt?.rawValue)
        out.member("limit", limit.text)
        out.member("seconds", part.seconds)
        out.member("counted_percent", counted.percent)
        out.member("requests", part.counts.requests)
        out.member("requests_refused", step.requests)
        out.member("installs", installs)
        out.member("installs_refused", step.installCount)
        out.member("addresses_refused", step.addressCount)
        out.objects("builds", of: builds) { out, build in
            out.member("build", build.name)
            out.member("requests", build.all)
            out.member("not_verified", build.failed)
        }
    }
}

/// The estimates for an order about all rules: one for each rule that refuses more clients after
/// it.
package struct RolloutForecasts: Sendable {
    /// The most rules that the lines name. A command prints eight lines at most.
    private static let linesMax = 7

    private let forecasts: [RolloutForecast]

    package init(_ forecasts: [RolloutForecast]) { self.forecasts = forecasts }

    /// Whether the order needs confirmation for one of the rules.
    package var asksConfirmation: Bool { doubt != nil }

    /// The most serious reason of all rules; `nil` where the order needs no confirmation.
    package var doubt: RolloutForecast.Doubt? {
        let doubts = Set(forecasts.compactMap(\.doubt))
        return [.manyRefused, .fewRequests, .noRequests].first { doubts.contains($0) }
    }

    /// The text for people: a line for each rule, first those for which the order needs
    /// confirmation.
    package var lines: [String] {
        let (asking, others) = (
            forecasts.filter(\.asksConfirmation), forecasts.filter { !$0.asksConfirmation }
        )
        var lines = (asking + others).prefix(Self.linesMax).map { forecast in
            "\(forecast.rule): \(forecast.lines[0])"
        }
        let unnamed = forecasts.count - lines.count
        if unnamed > 0 { lines.append("and \(unnamed) more rules refuse more clients") }
        return lines
    }

    /// The requests of the rules for which the order needs confirmation, so that 0 says that no
    /// request tells whom they refuse; of all rules where it needs none.
    private var requests: UInt64 {
        forecasts.filter { $0.asksConfirmation || !asksConfirmation }
            .reduce(0) { $0 &+ $1.requests }
    }

    /// Member names are API: add, do not rename.
    ///
    /// - order: the version of the fleet's orders; `nil` without a fleet.
    func json(order: Int64?) -> [UInt8] {
        var out = JSONWriter(.compact)
        out.object { out in
            if let order { out.member("order", order) }
            out.member("rule", "*")
            out.member("confirm", asksConfirmation ? "needed" : "none")
            out.member("doubt", doubt?.rawValue)
            out.member("requests", requests)
            out.objects("rules", of: forecasts) { out, forecast in forecast.write(into: &out) }
            out.texts("lines", lines)
        }
        return out.line
    }
}
