import Cryptography
import Encodings

/// An attacker between app and gateway changes the order.
struct TamperedRequest: Step {
    let title = "A tampered request is refused"

    func play(on stage: Stage) throws {
        let forged = Array(#"{"item":"yacht"}"#.utf8)
        try changeDigestToo(forged, stage)
        try changeContent(forged, stage)
        try keepBack(forged, stage)
    }

    private func changeDigestToo(_ forged: [UInt8], _ stage: Stage) throws {
        stage.narrator.say("   content and Content-Digest are changed on the way:")
        var call = try signedOrder(stage)
        call.content = forged
        let digest = Base64.text(SHA256.digest(of: forged).array)
        call.fields = call.fields.map { field in
            field.name == "Content-Digest" ? (field.name, "sha-256=:\(digest):") : field
        }
        try claimRefusal(of: call, 403, "signature-mismatch", stage)
    }

    private func changeContent(_ forged: [UInt8], _ stage: Stage) throws {
        stage.narrator.say("   the content alone is changed; the head is as signed:")
        var call = try signedOrder(stage)
        call.content = forged
        try claimRefusal(of: call, 400, "digest-mismatch", stage)
    }

    private func claimRefusal(
        of call: Call,
        _ status: Int,
        _ reason: String,
        _ stage: Stage
    ) throws {
        let answer = try stage.exchange(call)
        stage.narrator.claim(
            "refused with \(status) \(reason)",
            answer.status == status && answer.problem("reason") == reason
        )
        stage.claimOriginSawNothing()
    }

    /// The rule holds content: incomplete content can't be judged and is not forwarded.
    private func keepBack(_ forged: [UInt8], _ stage: Stage) throws {
        stage.narrator.say("   the content is changed, and its last byte is never sent:")
        var call = try signedOrder(stage)
        call.content = forged
        stage.narrator.sent(call)
        try call.sendTruncated(to: stage.port)
        stage.claimOriginSawNothing()
    }

    private func signedOrder(_ stage: Stage) throws -> Call {
        let challenge = try stage.phone.challenge("assertion")
        return stage.phone.signed(.order, challenge)
    }
}

/// An attacker has recorded the request.
struct ReplayedRequest: Step {
    let title = "A replay is refused"

    func play(on stage: Stage) throws {
        stage.narrator.say("   the same bytes once more:")
        let replay = try stage.exchange(stage.admitted)
        stage.narrator.claim(
            "refused with 401 counter-replayed",
            replay.status == 401 && replay.problem("reason") == "counter-replayed"
        )
        stage.narrator.say("   a new assertion over the old challenge:")
        let used = stage.admitted.fields.first { $0.name == "App-Attest-Challenge" }?.value
        var call = Call("POST", "/v1/orders", content: stage.admitted.content)
        call = stage.phone.signed(call, used)
        let second = try stage.exchange(call)
        stage.narrator.claim(
            "refused with 401 challenge-spent",
            second.status == 401 && second.problem("reason") == "challenge-spent"
        )
        stage.claimOriginSawNothing()
    }
}
