import Encodings
package import Telemetry

/// The state of the calls to services that know the tokens of `proofs`.
package struct ProofCallFacts: Sendable {
    /// How often something happened.
    package struct Count: Sendable {
        package var proof: String
        package var word: String
        package var count: UInt64

        package init(proof: String, word: String, count: UInt64) {
            self.proof = proof
            self.word = word
            self.count = count
        }
    }

    /// The services that were called, by proof.
    package var services: [CallLineFacts] = []
    /// The words for a breaker.
    package var breakers: [String] = []
    /// Calls by the status of the answer, or why there is none.
    package var ends: [Count] = []
    /// Tokens by what was found of them.
    package var verdicts: [Count] = []
    /// Time from the hand-in to the reply, by proof; nanoseconds.
    package var durations: [(proof: String, Histogram)] = []
    /// Tokens that are remembered as used, by proof.
    package var usedTokens: [(proof: String, count: Int)] = []

    package init() {}

    /// Those of two kinds of services.
    package static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.services += right.services
        sum.ends += right.ends
        sum.verdicts += right.verdicts
        sum.durations += right.durations
        sum.usedTokens += right.usedTokens
        return sum
    }

    func write(into out: inout Exposition) {
        out.family(
            "proof_calls_total",
            "counter",
            "Calls to services that know tokens of `proofs`, by how they ended.",
            ends.map { ([("proof", $0.proof), ("status", $0.word)], $0.count) }
        )
        out.family(
            "proof_verdicts_total",
            "counter",
            "Tokens that services know, by what was found of them.",
            verdicts.map { ([("proof", $0.proof), ("verdict", $0.word)], $0.count) }
        )
        services.write(into: &out, of: "proof", each: "service", breakers)
        out.metric("proof_tokens_used", type: "gauge", help: "Tokens not to be used again.")
        for used in usedTokens {
            out.sample("proof_tokens_used", [("proof", used.proof)], used.count)
        }
        out.metric("proof_call_seconds", type: "histogram", help: "From the hand-in to the reply.")
        for (proof, histogram) in durations {
            let labels = [("proof", proof)]
            out.histogram("proof_call_seconds", histogram, unit: 1e-9, labels: labels)
        }
    }

    /// Writes the services for `/status`.
    func write(into out: inout JSONWriter) {
        out.objects("proof_services", services) { out, service in service.write(into: &out) }
    }
}
