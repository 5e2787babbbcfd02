import JSONText
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

    /// A service that was called.
    package struct Service: Sendable {
        package var proof: String
        /// Calls that wait.
        package var waiting: Int
        package var underWay: Int
        /// One of ``ProofCallFacts/breakers``.
        package var breaker: String
        /// From the hand-in to the reply; nanoseconds.
        package var duration: Histogram?

        package init(
            proof: String,
            waiting: Int,
            underWay: Int,
            breaker: String,
            duration: Histogram?
        ) {
            self.proof = proof
            self.waiting = waiting
            self.underWay = underWay
            self.breaker = breaker
            self.duration = duration
        }
    }

    package var services: [Service] = []
    /// The words for a breaker.
    package var breakers: [String] = []
    /// Calls by the status of the answer, or why there is none.
    package var ends: [Count] = []
    /// Tokens by what was found of them.
    package var verdicts: [Count] = []
    /// Tokens that are remembered as used, by proof.
    package var usedTokens: [(proof: String, count: Int)] = []

    package init() {}

    package init(services: [Service], breakers: [String], ends: [Count]) {
        self.services = services
        self.breakers = breakers
        self.ends = ends
    }

    /// Writes the metrics.
    func write(into out: inout Exposition) {
        out.metric(
            "proof_calls_total",
            type: "counter",
            help: "Calls to services that know tokens of `proofs`, by how they ended."
        )
        for end in ends {
            let labels = [("proof", end.proof), ("status", end.word)]
            out.sample("proof_calls_total", labels, end.count)
        }
        out.metric(
            "proof_verdicts_total",
            type: "counter",
            help: "Tokens of tests for people, by what was found of them."
        )
        for verdict in verdicts {
            let labels = [("proof", verdict.proof), ("verdict", verdict.word)]
            out.sample("proof_verdicts_total", labels, verdict.count)
        }
        out.metric("proof_calls_waiting", type: "gauge", help: "Calls that wait for their turn.")
        for service in services {
            out.sample("proof_calls_waiting", [("proof", service.proof)], service.waiting)
        }
        out.metric("proof_calls_under_way", type: "gauge", help: "Calls without answer yet.")
        for service in services {
            out.sample("proof_calls_under_way", [("proof", service.proof)], service.underWay)
        }
        out.metric(
            "proof_breaker",
            type: "gauge",
            help: "1 for the state of a service's breaker; open: the service is left alone."
        )
        for service in services {
            for state in breakers {
                let labels = [("proof", service.proof), ("state", state)]
                out.sample("proof_breaker", labels, service.breaker == state ? 1 : 0)
            }
        }
        out.metric("proof_tokens_used", type: "gauge", help: "Tokens not to be used again.")
        for used in usedTokens {
            out.sample("proof_tokens_used", [("proof", used.proof)], used.count)
        }
        out.metric("proof_call_seconds", type: "histogram", help: "From the hand-in to the reply.")
        for service in services {
            guard let histogram = service.duration else { continue }
            let labels = [("proof", service.proof)]
            out.histogram("proof_call_seconds", histogram, unit: 1e-9, labels: labels)
        }
    }

    /// Writes the services for `/status`.
    func write(into out: inout JSONWriter) {
        out.array("proof_services") { out in
            for service in services {
                out.object { out in
                    out.member("proof", service.proof)
                    out.member("breaker", service.breaker)
                    out.member("calls_waiting", service.waiting)
                    out.member("calls_under_way", service.underWay)
                }
            }
        }
    }
}
