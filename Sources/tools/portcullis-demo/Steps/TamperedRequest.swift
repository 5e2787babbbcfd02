import ByteCoding
import Cryptography

/// Somebody between app and gateway changes the order.
struct TamperedRequest: Step {
    let title = "A tampered request is refused"

    func play(on stage: Stage) throws(DemoError) {
        let forged = Array(#"{"item":"yacht"}"#.utf8)
        try changeDigestToo(forged, stage)
        try changeContent(forged, stage)
        try keepBack(forged, stage)
    }

    private func changeDigestToo(_ forged: [UInt8], _ stage: Stage) throws(DemoError) {
        stage.narrator.say("   content and Content-Digest are changed on the way:")
        var call = try signedOrder(stage)
        call.content = forged
        let digest = Base64.text(SHA256.digest(of: forged).octets)
        call.fields = call.fields.map { field in
            field.name == "Content-Digest" ? (field.name, "sha-256=:\(digest):") : field
        }
        let answer = try stage.exchange(call)
        stage.narrator.claim(
            "refused with 403 signature-mismatch",
            answer.status == 403 && answer.problem("reason") == "signature-mismatch"
        )
        stage.claimOriginSawNothing()
    }

    private func changeContent(_ forged: [UInt8], _ stage: Stage) throws(DemoError) {
        stage.narrator.say("   the content alone is changed; the head is as signed:")
        var call = try signedOrder(stage)
        call.content = forged
        let answer = try stage.exchange(call)
        stage.narrator.claim(
            "refused with 400 digest-mismatch",
            answer.status == 400 && answer.problem("reason") == "digest-mismatch"
        )
        stage.claimOriginSawNothing()
    }

    /// The rule holds content: what is not all there can't be judged, and goes nowhere.
    private func keepBack(_ forged: [UInt8], _ stage: Stage) throws(DemoError) {
        stage.narrator.say("   the content is changed, and its last byte is never sent:")
        var call = try signedOrder(stage)
        call.content = forged
        stage.narrator.sent(call)
        try call.sendTruncated(to: stage.port)
        stage.claimOriginSawNothing()
    }

    private func signedOrder(_ stage: Stage) throws(DemoError) -> Call {
        let challenge = try stage.phone.challenge("assertion")
        let order = Call("POST", "/v1/orders", content: Array(#"{"item":"lamp"}"#.utf8))
        return stage.phone.signed(order, challenge)
    }
}
