import SoftwareAuthenticator

/// The same app on an Android phone.
struct AndroidRequest: Step {
    let title = "An Android phone, under the same rule"

    func play(on stage: Stage) throws(DemoError) {
        var phone = Phone(stage.androidPhone.makeKey(), gateway: stage.port)
        let enrolment = phone.enrolment(try phone.challenge("enrolment"), at: Stage.now)
        let enrolled = try stage.exchange(enrolment)
        stage.narrator.claim(
            "its hardware vouches for the key with a chain of certificates: 201",
            enrolled.status == 201
        )
        let order = Call("POST", "/v1/orders", content: Array(#"{"item":"lamp"}"#.utf8))
        let challenge = try phone.challenge("assertion")
        let call = phone.signed(order, challenge)
        let answer = try stage.exchange(call, showing: ["App-Attest-Assertion"])
        stage.narrator.claim("200 from the origin", answer.status == 200)
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "the origin has the verdict as for an iPhone, and the package for an App ID",
            sighting["App-Attest-Verdict"] == "pass"
                && sighting["App-Attest-App-Id"] == Phone.package
        )
        let again = try stage.exchange(call)
        stage.narrator.claim(
            "the same request again is a replay, by the counter that the app keeps",
            again.status == 401 && again.problem("reason") == "counter-replayed"
        )
        stage.claimOriginSawNothing()
    }
}
