import AppleStandIn
import Cryptography
import SoftwareAuthenticator

/// The same app on an Android phone.
struct AndroidRequest: Step {
    let title = "An Android phone, under the same rule"

    func play(on stage: Stage) throws {
        var phone = Phone(stage.androidPhone.makeKey(), gateway: stage.port)
        let enrolment = phone.enrolment(try phone.challenge("enrolment"), at: Stage.now)
        let enrolled = try stage.exchange(enrolment)
        stage.narrator.claim(
            "its hardware vouches for the key with a chain of certificates: 201",
            enrolled.status == 201
        )
        let challenge = try phone.challenge("assertion")
        let call = phone.signed(.order, challenge)
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

/// An Android phone on a route that asks for Google Play's word beside the signature.
struct PlayToken: Step {
    let title = "An Android phone, where the rule asks for Google Play's word, too"

    private static let field = "App-Attest-Integrity-Token"

    func play(on stage: Stage) throws {
        var phone = Phone(stage.androidPhone.makeKey(), gateway: stage.port)
        let enrolment = phone.enrolment(try phone.challenge("enrolment"), at: Stage.now)
        stage.narrator.claim("enrolled", try enrolment.send(to: stage.port).status == 201)
        let payout = Call("POST", "/v1/payouts", content: Array(#"{"amount":100}"#.utf8))
        let bare = try stage.exchange(phone.signed(payout, try phone.challenge("assertion")))
        stage.narrator.claim(
            "a signature alone is not enough: 401, and the app is to get a token",
            bare.status == 401 && bare.problem("next") == "get-token"
        )
        let challenge = try phone.challenge("assertion")
        let token = try minted(for: phone.clientData(payout, challenge), stage)
        var call = phone.signed(payout, challenge)
        call.fields.append((Self.field, token))
        let answer = try stage.exchange(call, showing: [Self.field])
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "with one that was made for this request: 200, and the origin has Google's words",
            answer.status == 200
                && sighting["App-Attest-Integrity"]?.hasPrefix("met;") == true
        )
        var other = phone.signed(payout, try phone.challenge("assertion"))
        other.fields.append((Self.field, token))
        let again = try stage.exchange(other)
        stage.narrator.claim(
            "beside another request it is worth nothing: \(again.problem("reason") ?? "")",
            again.status == 403 && again.problem("reason") == "proof-refused"
        )
        stage.claimOriginSawNothing()
    }

    /// What Google says of a good phone, about the request with this client data.
    private func minted(for clientData: String, _ stage: Stage) throws -> String {
        let verdict = SoftwarePlayVerdict(
            clientDataHash: SHA256.digest(of: Array(clientData.utf8)).array,
            at: Stage.now.seconds * 1_000,
            signer: SoftwarePhone.signer
        )
        do {
            return try stage.playConsole.token(verdict.json)
        } catch {
            throw StoryFault("the stand-in for Google Play: \(error)")
        }
    }
}
