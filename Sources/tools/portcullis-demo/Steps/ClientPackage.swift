import PortcullisClient

/// An app with the client package does none of these steps by hand.
struct ClientPackage: Step {
    let title = "The client package enrols, recovers and opens a session"

    func play(on stage: Stage) throws(DemoError) {
        stage.narrator.say("   session.data(for: request), and nothing else in the app")
        let first = try get("/v1/cart", stage)
        stage.narrator.claim(
            "the 401 told it what to sign; it made one key and had it attested once",
            first.statusCode == 200 && first.attempts == 2 && stage.app.counts == .init(1, 1)
        )
        let key = Self.assertingKey(first)

        stage.narrator.say("   the phone loses its keys; the app's record of them stays:")
        try stage.app.loseKeys()
        let second = try get("/v1/cart", stage)
        stage.narrator.claim(
            "it noticed, enrolled a second key, and the request went through",
            second.statusCode == 200 && stage.app.counts == .init(2, 2)
                && Self.assertingKey(second) != key && Self.assertingKey(second) != nil
        )

        stage.narrator.say("   a route that accepts sessions:")
        let third = try get("/v1/timeline", stage, proof: "session")
        stage.narrator.claim(
            "one assertion opened a session; the request is signed with its secret",
            third.statusCode == 200 && Self.isSession(third) && stage.app.counts == .init(2, 2)
        )
    }

    private func get(
        _ path: String,
        _ stage: Stage,
        proof: String = "assertion"
    ) throws(DemoError) -> ProvenResponse {
        let answer = try stage.app.get(path, gateway: stage.port)
        let (status, attempts) = (answer.statusCode, answer.attempts)
        stage.narrator.say("   → GET \(path)   ← \(status), attempts: \(attempts)")
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "the origin is told that it was proven by \(proof)",
            sighting["App-Attest-Verdict"] == "pass" && sighting["App-Attest-Proof"] == proof
        )
        return answer
    }

    private static func assertingKey(_ answer: ProvenResponse) -> String? {
        if case .assertion(let keyID) = answer.proof { keyID } else { nil }
    }

    private static func isSession(_ answer: ProvenResponse) -> Bool {
        if case .session = answer.proof { true } else { false }
    }
}
