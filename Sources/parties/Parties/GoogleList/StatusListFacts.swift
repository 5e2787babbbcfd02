package import Encodings
import Services
package import Telemetry

/// The state of Google's list of revoked certificates, for operators.
package struct StatusListFacts: Sendable {
    /// What it has done to enrolled keys, since the start.
    package struct Keys: Sendable {
        package var revoked: UInt64 = 0
        package var restored: UInt64 = 0
        /// The time of the last comparison, in seconds.
        package var seconds = 0.0

        package init() {}
    }

    /// Where the list in use came from: `google`, `copy` or `release`.
    package var source = ""
    package var entries = 0
    /// Second of Unix time at which Google vouched for it, and the seconds since.
    package var dateSeconds: Int64 = 0
    package var ageSeconds: Int64 = 0
    /// Requests for it since the start, by how they ended.
    package var fetches: [(outcome: String, count: UInt64)] = []
    package var keys = Keys()

    package init() {}
}

/// `nil` on a gateway without an Android app. Its families of metrics have no samples.
extension StatusListFacts?: PartyFacts {
    package func write(into out: inout Exposition) {
        let facts = self
        out.gauge(
            "google_status_list_age_seconds",
            facts?.ageSeconds,
            help: "Age of Google's list of revoked certificates; absent without Android apps."
        )
        out.metric(
            "google_status_list_entries",
            type: "gauge",
            help: "Entries of Google's list of revoked certificates, by where it came from."
        )
        if let facts {
            out.sample(
                "google_status_list_entries",
                labels: [("source", facts.source)],
                facts.entries
            )
        }
        let fetches = facts?.fetches ?? []
        out.family(
            "google_status_list_fetches_total",
            type: "counter",
            help: "Requests for Google's list of revoked certificates by how they ended.",
            fetches.map { ([("outcome", $0.outcome)], $0.count) }
        )
        out.gauge(
            "google_status_list_compare_seconds",
            facts?.keys.seconds,
            help: "Time of the last comparison of the enrolled keys with Google's list."
        )
        out.metric(
            "keys_listed_total",
            type: "counter",
            help: "Keys that Google's list has revoked, and keys that are good again."
        )
        if let facts {
            out.sample("keys_listed_total", labels: [("change", "revoked")], facts.keys.revoked)
            out.sample("keys_listed_total", labels: [("change", "restored")], facts.keys.restored)
        }
    }

    package func write(into out: inout JSONWriter) { self?.write(into: &out) }
}

extension StatusListFacts {
    /// Writes the list for `/status`.
    fileprivate func write(into out: inout JSONWriter) {
        out.object("google_status_list") { out in
            out.member("source", source)
            out.member("date_seconds", dateSeconds)
            out.member("age_seconds", ageSeconds)
            out.member("entries", entries)
            out.objects("fetches", of: fetches) { out, fetch in
                out.member("outcome", fetch.outcome)
                out.member("count", fetch.count)
            }
            out.member("keys_revoked", keys.revoked)
            out.member("keys_restored", keys.restored)
        }
    }
}
