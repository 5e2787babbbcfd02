/// The app signs what it sends.
struct AdmittedRequest: Step {
    let title = "A signed request is admitted"

    func play(on stage: Stage) throws(DemoError) {
        var call = Call("POST", "/v1/orders?express=1", content: Array(#"{"item":"lamp"}"#.utf8))
        // What a client claims about itself.
        call.fields = [("App-Attest-Verdict", "trust me")]
        let challenge = try stage.phone.challenge("assertion")
        stage.narrator.say("   what is signed, each line with a line feed behind it:")
        for line in stage.phone.clientData(call, challenge).split(separator: "\n") {
            stage.narrator.say("     | \(line)")
        }
        call = stage.phone.signed(call, challenge)
        let answer = try stage.exchange(call, showing: call.fields.map(\.name))
        stage.narrator.claim("200 from the origin", answer.status == 200)
        stage.narrator.claim(
            "the next challenge came with it, so the next request costs no round trip",
            answer.challenge != nil
        )
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "the origin has the verdict, the key and the app from the gateway",
            sighting.isComplete && sighting["App-Attest-Verdict"] == "pass"
                && sighting["App-Attest-Key-Id"] == stage.phone.keyID
                && sighting["App-Attest-App-Id"] == Phone.appID
                && sighting["App-Attest-Environment"] == "test"
        )
        let verdicts = sighting.head.fields.filter { $0.name.lowercased() == "app-attest-verdict" }
        stage.narrator.claim(
            "what the client claimed is gone, and so are assertion and challenge",
            verdicts.count == 1 && sighting["App-Attest-Assertion"] == nil
                && sighting["App-Attest-Challenge"] == nil
        )
        stage.admitted = call
    }
}
