import SoftwareAuthenticator

/// The app makes a key and has it attested.
struct FirstEnrolment: Step {
    let title = "The app enrols a key: challenge, attestation, 201"

    func play(on stage: Stage) throws {
        let asked = try stage.exchange(Phone.challengeCall("enrolment"))
        guard let challenge = asked.json("/challenges/0") else {
            throw StoryFault("no challenge: \(asked.text)")
        }
        stage.narrator.say("     \(Narrator.short(asked.text.filter { $0 != "\n" }))")
        let call = stage.phone.enrolment(challenge, at: Stage.now)
        let enrolled = try stage.exchange(call)
        stage.narrator.say("     key id \(stage.phone.keyID)")
        stage.narrator.claim("201, and the key is on disk by then", enrolled.status == 201)

        let again = try stage.exchange(call)
        stage.narrator.claim(
            "the same call again, as after a lost answer, is answered 200 and changes nothing",
            again.status == 200
        )
        let other = Phone(stage.anotherDevice.makeKey(), gateway: stage.port)
        let second = try stage.exchange(other.enrolment(challenge, at: Stage.now))
        stage.narrator.claim(
            "a challenge enrols no second key",
            second.status == 401 && second.problem("reason") == "challenge-spent"
                && second.problem("next") == "enrol"
        )
        stage.claimOriginSawNothing()
    }
}

/// A client without the app, with curl for example.
struct UnprovenRequest: Step {
    let title = "A request without proof is refused"

    func play(on stage: Stage) throws {
        let answer = try stage.exchange(.order)
        stage.narrator.claim(
            "refused with 401 assertion-missing",
            answer.status == 401 && answer.problem("reason") == "assertion-missing"
        )
        let field = answer["WWW-Authenticate"] ?? ""
        stage.narrator.claim(
            "the answer says what to do next and brings the challenge to do it with",
            answer.problem("next") == "sign-again" && answer.challenge != nil
                && field.hasPrefix("AppAttest ")
        )
        stage.claimOriginSawNothing()
    }
}

/// The app signs its request.
struct AdmittedRequest: Step {
    let title = "A signed request is admitted"

    func play(on stage: Stage) throws {
        var call = Call.order
        call.target += "?express=1"
        // A client's claim about itself.
        call.fields = [("App-Attest-Verdict", "trust me")]
        let challenge = try stage.phone.challenge("assertion")
        stage.narrator.say("   what is signed, each line ended by a line feed:")
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
        let verdicts = sighting.fields.filter { $0.name.lowercased() == "app-attest-verdict" }
        stage.narrator.claim(
            "what the client claimed is gone, and so are assertion and challenge",
            verdicts.count == 1 && sighting["App-Attest-Assertion"] == nil
                && sighting["App-Attest-Challenge"] == nil
        )
        stage.admitted = call
    }
}
