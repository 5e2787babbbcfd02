import Encodings
import Telemetry

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

extension StatusListFacts {
    /// Writes the metrics. The families exist on every gateway; without an Android app they have no
    /// samples.
    static func write(_ facts: StatusListFacts?, into out: inout Exposition) {
        out.gauge(
            "google_status_list_age_seconds",
            facts?.ageSeconds,
            "Age of Google's list of revoked certificates; absent without Android apps."
        )
        out.metric(
            "google_status_list_entries",
            type: "gauge",
            help: "Entries of Google's list of revoked certificates, by where it came from."
        )
        if let facts {
            out.sample("google_status_list_entries", [("source", facts.source)], facts.entries)
        }
        let fetches = facts?.fetches ?? []
        out.family(
            "google_status_list_fetches_total",
            "counter",
            "Requests for Google's list of revoked certificates by how they ended.",
            fetches.map { ([("outcome", $0.outcome)], $0.count) }
        )
        out.gauge(
            "google_status_list_compare_seconds",
            facts?.keys.seconds,
            "Time of the last comparison of the enrolled keys with Google's list."
        )
        out.metric(
            "keys_listed_total",
            type: "counter",
            help: "Keys that Google's list has revoked, and keys that are good again."
        )
        if let facts {
            out.sample("keys_listed_total", [("change", "revoked")], facts.keys.revoked)
            out.sample("keys_listed_total", [("change", "restored")], facts.keys.restored)
        }
    }

    /// Writes the list for `/status`.
    func write(into out: inout JSONWriter) {
        out.object("google_status_list") { out in
            out.member("source", source)
            out.member("date_seconds", dateSeconds)
            out.member("age_seconds", ageSeconds)
            out.member("entries", entries)
            out.objects("fetches", fetches) { out, fetch in
                out.member("outcome", fetch.outcome)
                out.member("count", fetch.count)
            }
            out.member("keys_revoked", keys.revoked)
            out.member("keys_restored", keys.restored)
        }
    }
}

/// The state of a set of public keys that tokens of a proof are checked with, for operators.
package struct KeySetFacts: Sendable {
    /// The name of the proof that has it fetched.
    package let proof: String
    /// 0 before the first set came.
    package var keys = 0
    /// Requests for the set since the start: those that brought one, those that confirmed it, and
    /// those that failed.
    package var fetched: UInt64 = 0
    package var unchanged: UInt64 = 0
    package var failed: UInt64 = 0
    /// Tokens that named a key that the set did not have.
    package var misses: UInt64 = 0
    /// Seconds since the issuer last answered; `nil` before that.
    package var ageSeconds: Int64?

    package init(proof: String) { self.proof = proof }

    private var outcomes: [(name: String, count: UInt64)] {
        [("fetched", fetched), ("unchanged", unchanged), ("failed", failed)]
    }
}

extension KeySetFacts {
    /// Writes the metrics. The families exist on every gateway; without such proofs they have no
    /// samples.
    static func write(_ sets: [KeySetFacts], into out: inout Exposition) {
        out.metric("proof_keys", type: "gauge", help: "Keys of a proof's issuer that are known.")
        for set in sets { out.sample("proof_keys", [("proof", set.proof)], set.keys) }
        out.metric(
            "proof_keys_age_seconds",
            type: "gauge",
            help: "Time since the issuer of a proof's keys last answered."
        )
        for set in sets {
            guard let age = set.ageSeconds else { continue }
            out.sample("proof_keys_age_seconds", [("proof", set.proof)], Int(age))
        }
        out.metric(
            "proof_keys_fetches_total",
            type: "counter",
            help: "Requests for the keys of a proof's issuer by how they ended."
        )
        for set in sets {
            for (name, count) in set.outcomes {
                let labels = [("proof", set.proof), ("outcome", name)]
                out.sample("proof_keys_fetches_total", labels, count)
            }
        }
        out.family(
            "proof_keys_missing_total",
            "counter",
            "Tokens that named a key which the issuer's set did not have.",
            sets.map { ([("proof", $0.proof)], $0.misses) }
        )
    }

    /// Writes the members of the set for `/status`.
    func write(into out: inout JSONWriter) {
        out.member("proof", proof)
        out.member("keys", keys)
        if let ageSeconds { out.member("age_seconds", ageSeconds) }
        for (name, count) in outcomes { out.member(name, count) }
        out.member("missing", misses)
    }
}
