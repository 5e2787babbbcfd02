import RequestBinding
import SoftwareAuthenticator

/// A rule is enforced for a quarter of the keys, to begin with.
struct PartialRollout: Step {
    let title = "A rule is enforced for 25 % of the keys"

    /// The result of the customers' requests.
    private struct Outcome {
        /// The customers who were refused, by number.
        var refused: Set<Int> = []
        /// Whether each other request was forwarded with the verdict that it would have had.
        var othersAreTold = true
        /// One of the forwarded requests.
        var example: Sighting?
    }

    func play(on stage: Stage) throws {
        stage.narrator.say(
            "   a hundred enrolled phones whose app sends each request twice, with the"
        )
        stage.narrator.say("   assertion of the first:")
        var customers: [Phone] = []
        for number in 0..<100 {
            // Keys come from a seed, so the numbers below are equal in every run.
            let seed = Array("phone \(number)".utf8)
            customers.append(try stage.enrolled(stage.anotherDevice.makeKey(seed: seed)))
        }
        let calls = try buy(at: "/v1/checkout", &customers, stage)
        let first = try look(calls, stage)
        let count = first.refused.count
        stage.narrator.say("   → 100 × POST /v1/checkout, for the second time")
        stage.narrator.say("   ← \(count) × 401 counter-replayed, \(100 - count) × 200")
        stage.narrator.claim("about a quarter is refused: \(count)", (10...40).contains(count))
        if let example = first.example { stage.narrator.originSaw(example) }
        stage.narrator.claim(
            "each of the other \(100 - count) went on, with the verdict it would have had",
            first.othersAreTold
        )
        let second = try look(calls, stage)
        stage.narrator.claim(
            "at a second look the same \(count) are refused",
            second.refused == first.refused
        )
        stage.quarterRefusals = first.refused.count + second.refused.count
        let raised = try look(try buy(at: "/v2/checkout", &customers, stage), stage)
        stage.narrator.claim(
            "raised to 50 % it is \(raised.refused.count), with the first \(count) among them",
            raised.refused.isStrictSuperset(of: first.refused)
        )
    }

    /// Sends a request of each customer, which passes in either part of the keys.
    private func buy(
        at target: String,
        _ customers: inout [Phone],
        _ stage: Stage
    ) throws -> [Call] {
        var calls: [Call] = []
        for number in customers.indices {
            var call = Call("POST", target)
            call.fields = [("App-Attest-Verdict", "pass")]
            call = customers[number].signed(call, nil, signing: [.method, .target])
            let answer = try call.send(to: stage.port)
            guard answer.status == 200, try stage.origin.next()["App-Attest-Verdict"] == "pass"
            else { throw StoryFault("phone \(number) does not pass: \(answer.status)") }
            calls.append(call)
        }
        return calls
    }

    private func look(_ calls: [Call], _ stage: Stage) throws -> Outcome {
        var outcome = Outcome()
        for (number, call) in calls.enumerated() {
            let answer = try call.send(to: stage.port)
            if answer.status == 401, answer.problem("reason") == "counter-replayed" {
                outcome.refused.insert(number)
                continue
            }
            let sighting = try stage.origin.next()
            outcome.example = outcome.example ?? sighting
            outcome.othersAreTold =
                outcome.othersAreTold && sighting.isComplete
                && sighting["App-Attest-Verdict"] == "refuse"
                && sighting["App-Attest-Reason"] == "counter-replayed"
        }
        return outcome
    }
}
