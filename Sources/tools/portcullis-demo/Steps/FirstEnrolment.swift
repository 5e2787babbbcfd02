import SoftwareAuthenticator

/// The app makes a key and has it attested.
struct FirstEnrolment: Step {
    let title = "The app enrols a key: challenge, attestation, 201"

    func play(on stage: Stage) throws(DemoError) {
        let asked = try stage.exchange(Phone.challengeCall("enrolment"))
        guard let challenge = asked.json("/challenges/0") else {
            throw DemoError("no challenge: \(asked.text)")
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
