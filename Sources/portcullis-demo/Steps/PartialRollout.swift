import RequestBinding
import SoftwareAuthenticator

/// A rule is enforced for a quarter of the keys, to begin with.
struct PartialRollout: Step {
    let title = "A rule is enforced for 25 % of the keys"

    /// What became of the customers' requests.
    private struct Outcome {
        /// The customers who were refused, by number.
        var refused: Set<Int> = []
        /// Whether each other was forwarded with the verdict it would have had.
        var othersAreTold = true
        /// One of the forwarded requests.
        var example: Sighting?
    }

    func play(on stage: Stage) throws(DemoError) {
        stage.narrator.say("   a hundred phones whose app signs well and never enrolled its key:")
        var customers = (0..<100).map { number in
            // Keys of a seed, so that the numbers below are those of every run.
            let seed = Array("phone \(number)".utf8)
            return Phone(stage.anotherDevice.makeKey(seed: seed), gateway: stage.port)
        }
        let first = try look(at: "/v1/checkout", &customers, stage)
        let count = first.refused.count
        stage.narrator.say("   → 100 × POST /v1/checkout")
        stage.narrator.say("   ← \(count) × 401 key-unknown, \(100 - count) × 200")
        stage.narrator.claim("about a quarter is refused: \(count)", (10...40).contains(count))
        if let example = first.example { stage.narrator.originSaw(example) }
        stage.narrator.claim(
            "each of the other \(100 - count) went on, with the verdict it would have had",
            first.othersAreTold
        )
        let second = try look(at: "/v1/checkout", &customers, stage)
        stage.narrator.claim(
            "at a second look the same \(count) are refused",
            second.refused == first.refused
        )
        stage.quarterRefusals = first.refused.count + second.refused.count
        let raised = try look(at: "/v2/checkout", &customers, stage)
        stage.narrator.claim(
            "raised to 50 % it is \(raised.refused.count), with the first \(count) among them",
            raised.refused.isStrictSuperset(of: first.refused)
        )
        try passEnrolled(stage)
    }

    private func look(
        at target: String,
        _ customers: inout [Phone],
        _ stage: Stage
    ) throws(DemoError) -> Outcome {
        var outcome = Outcome()
        for number in customers.indices {
            var call = Call("POST", target)
            call.fields = [("App-Attest-Verdict", "pass")]
            call = customers[number].signed(call, nil, signing: [.method, .target])
            let answer = try call.send(to: stage.port)
            if answer.status == 401, answer.problem("reason") == "key-unknown" {
                outcome.refused.insert(number)
                continue
            }
            let sighting = try stage.origin.next()
            outcome.example = outcome.example ?? sighting
            outcome.othersAreTold =
                outcome.othersAreTold && sighting.isComplete
                && sighting["App-Attest-Verdict"] == "refuse"
                && sighting["App-Attest-Reason"] == "key-unknown"
        }
        return outcome
    }

    private func passEnrolled(_ stage: Stage) throws(DemoError) {
        let call = stage.phone.signed(
            Call("POST", "/v1/checkout"),
            nil,
            signing: [.method, .target]
        )
        let answer = try call.send(to: stage.port)
        let sighting = try stage.origin.next()
        stage.narrator.claim(
            "the enrolled phone passes, in whichever part it is",
            answer.status == 200 && sighting["App-Attest-Verdict"] == "pass"
        )
    }
}
