package import Encodings
import Services
package import Telemetry

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

    fileprivate var outcomes: [(name: String, count: UInt64)] {
        [("fetched", fetched), ("unchanged", unchanged), ("failed", failed)]
    }
}

/// The sets of all proofs. Their families of metrics exist on every gateway.
extension [KeySetFacts]: PartyFacts {
    package func write(into out: inout Exposition) {
        let sets = self
        out.metric("proof_keys", type: "gauge", help: "Keys of a proof's issuer that are known.")
        for set in sets { out.sample("proof_keys", labels: [("proof", set.proof)], set.keys) }
        out.metric(
            "proof_keys_age_seconds",
            type: "gauge",
            help: "Time since the issuer of a proof's keys last answered."
        )
        for set in sets {
            guard let age = set.ageSeconds else { continue }
            out.sample("proof_keys_age_seconds", labels: [("proof", set.proof)], Int(age))
        }
        out.metric(
            "proof_keys_fetches_total",
            type: "counter",
            help: "Requests for the keys of a proof's issuer by how they ended."
        )
        for set in sets {
            for (name, count) in set.outcomes {
                let labels = [("proof", set.proof), ("outcome", name)]
                out.sample("proof_keys_fetches_total", labels: labels, count)
            }
        }
        out.family(
            "proof_keys_missing_total",
            type: "counter",
            help: "Tokens that named a key which the issuer's set did not have.",
            sets.map { ([("proof", $0.proof)], $0.misses) }
        )
    }

    package func write(into out: inout JSONWriter) {
        guard !isEmpty else { return }
        out.objects("proof_keys", of: self) { out, set in set.write(into: &out) }
    }
}

extension KeySetFacts {
    /// Writes the members of the set for `/status`.
    fileprivate func write(into out: inout JSONWriter) {
        out.member("proof", proof)
        out.member("keys", keys)
        if let ageSeconds { out.member("age_seconds", ageSeconds) }
        for (name, count) in outcomes { out.member(name, count) }
        out.member("missing", misses)
    }
}
