import AppAttest
import Cryptography
import Encodings
import HTTPWire
import KeyStore
import Telemetry
import Verification

// Member names are API: add, do not rename.
extension Report {
    package var json: [UInt8] {
        var out = JSONWriter(.indented)
        out.object { out in
            writeMoments(into: &out)
            out.member("installs_error", RuleCounts.installsError)
            out.objects("rules", of: entries) { out, entry in
                out.member("id", entry.id)
                out.member("mode", entry.facts?.mode)
                out.member("rollout", entry.facts?.rollout)
                out.member("gone", entry.facts == nil)
                out.objects("windows", of: entry.parts) { out, part in part.write(into: &out) }
            }
        }
        return out.line
    }

    /// The main figures of each time slot.
    package var seriesJSON: [UInt8] {
        var out = JSONWriter(.compact)
        out.object { out in
            writeMoments(into: &out)
            out.array("columns") { out in
                let words = VerdictClass.allCases.map(\.rawValue)
                for word in ["at"] + words + ["refused", "mean"] { out.element(word) }
                for (name, _) in SeriesPoint.percentiles { out.element(name) }
            }
            out.objects("marks", of: marks) { out, mark in
                out.member("at", mark.at)
                out.member("kind", mark.kind.rawValue)
                out.member("text", mark.text)
            }
            // Percentiles of rules can't be added up, so those of all rules are listed, too.
            out.object("all") { out in
                out.objects("series", of: allSeries) { out, series in series.write(into: &out) }
            }
            out.objects("rules", of: entries) { out, entry in
                out.member("id", entry.id)
                out.member("gone", entry.facts == nil)
                out.objects("series", of: entry.series) { out, series in series.write(into: &out) }
            }
        }
        return out.line
    }

    private func writeMoments(into out: inout JSONWriter) {
        out.member("started_at", UnixTime(seconds: startedAt).iso8601)
        out.member("now", UnixTime(seconds: now).iso8601)
        gateways?.write(into: &out)
        if omitted > 0 { out.member("rules_left_out", omitted) }
    }
}

extension Report.Series {
    fileprivate func write(into out: inout JSONWriter) {
        out.member("seconds", slotSeconds)
        out.array("rows") { out in
            for (at, point) in points {
                out.array { out in
                    out.element(at)
                    for count in point.counts { out.element(count) }
                    out.element(point.refused)
                    out.element(point.mean)
                    for (_, share) in SeriesPoint.percentiles {
                        out.element(point.seconds(of: share))
                    }
                }
            }
        }
    }
}

extension Report.Part {
    fileprivate func write(into out: inout JSONWriter) {
        out.member("window", window.rawValue)
        out.member("seconds", seconds)
        out.member("requests", counts.requests)
        for kind in VerdictClass.allCases { out.member(kind.rawValue, counts[kind]) }
        out.member("refused", counts.refused)
        out.member("installs", counts.installCount)
        out.object("proofs") { out in
            for (name, count) in counts.proofs { out.member(name, count) }
        }
        out.object("integrity") { out in
            out.member("met", counts.integrity.met)
            out.member("unmet", counts.integrity.unmet)
        }
        out.reasons(counts.cells.reasons)
        out.object("latency") { out in
            out.member("count", counts.times.count)
            for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
                out.member(name, Double(counts.times.quantile(share)) * 1e-9)
            }
        }
        out.objects("steps", of: zip(counts.steps, RuleCounts.shares)) { out, item in
            let (step, share) = item
            out.member("percent", share.percent)
            out.member("requests", step.requests)
            out.member("installs", step.installCount)
            out.member("addresses", step.addressCount)
        }
        out.objects("versions", of: counts.groups) { out, group in group.write(into: &out) }
        out.objects("systems", of: counts.systemGroups) { out, group in
            group.name.write(into: &out)
            out.verdicts(group.cells)
        }
    }
}

extension RuleCounts.Group {
    fileprivate func write(into out: inout JSONWriter) {
        out.member("version", build.word)
        out.member("source", build.source.rawValue)
        out.member("environment", environment?.rawValue ?? "none")
        out.verdicts(cells)
    }
}

extension SystemCounts.Name {
    /// A system that the client claims; for all others together its name is `other`.
    fileprivate func write(into out: inout JSONWriter) {
        switch self {
        case .claimed(let system):
            out.member("os", system.name.rawValue)
            out.member("os_version", system.version)
        case .other:
            out.member("os", "other")
            out.member("os_version", .null)
        case .none:
            out.member("os", .null)
            out.member("os_version", .null)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func verdicts(_ cells: [some CountedVerdicts]) {
        for kind in VerdictClass.allCases { member(kind.rawValue, cells[kind]) }
        member("refused", cells.refused)
        reasons(cells.reasons)
    }

    fileprivate mutating func reasons(_ reasons: [(reason: String, count: UInt64)]) {
        objects("reasons", of: reasons) { out, item in
            out.member("reason", item.reason)
            out.member("count", item.count)
        }
    }
}
