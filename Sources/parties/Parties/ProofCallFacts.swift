package import Encodings
import OutboundCalls
import Services
package import Telemetry

/// The calls to one host or service of a party, and its breaker.
package struct CallLineFacts: Sendable {
    /// What names it among those of the party.
    package var labels: [(String, String)]
    /// Calls that wait.
    package var waiting: Int
    package var underWay: Int
    /// One of the words for a breaker.
    package var breaker: String

    package init(labels: [(String, String)], waiting: Int, underWay: Int, breaker: String) {
        self.labels = labels
        self.waiting = waiting
        self.underWay = underWay
        self.breaker = breaker
    }

    /// Writes the members of an element of a list of `/status`.
    func write(into out: inout JSONWriter) {
        for (name, value) in labels { out.member(name, value) }
        out.member("breaker", breaker)
        out.member("calls_waiting", waiting)
        out.member("calls_under_way", underWay)
    }
}

extension [CallLineFacts] {
    /// Writes the metrics of a party.
    ///
    /// - party: the first word of their names.
    /// - noun: what each of the lines is called.
    /// - breakers: the words for a breaker.
    func write(
        into out: inout Exposition,
        of party: String,
        each noun: String,
        _ breakers: [String]
    ) {
        let waiting = "\(party)_calls_waiting"
        out.metric(waiting, type: "gauge", help: "Calls that wait for their turn.")
        for line in self { out.sample(waiting, labels: line.labels, line.waiting) }
        let underWay = "\(party)_calls_under_way"
        out.metric(underWay, type: "gauge", help: "Calls without their answer yet.")
        for line in self { out.sample(underWay, labels: line.labels, line.underWay) }
        let breaker = "\(party)_breaker"
        out.metric(
            breaker,
            type: "gauge",
            help: "1 for the state that a \(noun)'s breaker is in; open: the \(noun) is left alone."
        )
        for line in self {
            for state in breakers {
                let labels = line.labels + [("state", state)]
                out.sample(breaker, labels: labels, line.breaker == state ? 1 : 0)
            }
        }
    }
}

/// The state of the calls to services that know the tokens of `proofs`.
package struct ProofCallFacts: PartyFacts {
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

    package func write(into out: inout Exposition) {
        out.family(
            "proof_calls_total",
            type: "counter",
            help: "Calls to services that know tokens of `proofs`, by how they ended.",
            ends.map { ([("proof", $0.proof), ("status", $0.word)], $0.count) }
        )
        out.family(
            "proof_verdicts_total",
            type: "counter",
            help: "Tokens that services know, by what was found of them.",
            verdicts.map { ([("proof", $0.proof), ("verdict", $0.word)], $0.count) }
        )
        services.write(
            into: &out,
            of: "proof",
            each: "service",
            CallBreaker.Condition.allCases.map(\.rawValue)
        )
        out.metric("proof_tokens_used", type: "gauge", help: "Tokens not to be used again.")
        for used in usedTokens {
            out.sample("proof_tokens_used", labels: [("proof", used.proof)], used.count)
        }
        out.metric("proof_call_seconds", type: "histogram", help: "From the hand-in to the reply.")
        for (proof, histogram) in durations {
            let labels = [("proof", proof)]
            out.histogram("proof_call_seconds", histogram, unit: 1e-9, labels: labels)
        }
    }

    /// Writes the services for `/status`.
    package func write(into out: inout JSONWriter) {
        out.objects("proof_services", of: services) { out, service in service.write(into: &out) }
    }
}
