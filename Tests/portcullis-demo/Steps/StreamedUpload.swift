import Cryptography

/// Large content is signed by its digest and streams.
struct StreamedUpload: Step {
    let title = "A chunked upload streams and is verified"
    private static let cutShort =
        #"portcullis_bodies_cut_short_total{rule="upload-photo",mode="enforce",verdict="pass"}"#

    func play(on stage: Stage) throws {
        let photo = (0..<8 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
        try send(photo, stage)
        try sendDamaged(photo, stage)
    }

    private func send(_ photo: [UInt8], _ stage: Stage) throws {
        let call = try signedUpload(photo, stage)
        stage.narrator.sent(call, showing: ["Content-Digest"])
        let half = call.pieces.count / 2
        let origin = stage.origin
        var isEarly = false
        let answer = try call.send(to: stage.port) { number in
            guard number == half else { return }
            try origin.awaitBytes(1)
            isEarly = true
        }
        stage.narrator.answered(answer)
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "the origin had bytes of it while the client still sent: nothing is held",
            isEarly
        )
        stage.narrator.claim(
            "the origin got all of it, with the digest that was signed",
            answer.status == 200 && sighting.isComplete
                && sighting.digest == SHA256.digest(of: photo)
        )
    }

    private func sendDamaged(_ photo: [UInt8], _ stage: Stage) throws {
        stage.narrator.say("   the same, with the last byte changed on the way:")
        var call = try signedUpload(photo, stage)
        call.content[call.content.count - 1] ^= 1
        let answer = try stage.exchange(call)
        let sighting = try stage.origin.next()
        stage.narrator.originSaw(sighting)
        stage.narrator.claim(
            "refused with 400 digest-mismatch; the origin saw a reset and never the end",
            answer.status == 400 && answer.problem("reason") == "digest-mismatch"
                && !sighting.isComplete && sighting.wasReset && sighting.contentCount < photo.count
        )
        let page = try Call.metrics.send(to: stage.adminPort).text
        let line = page.split(separator: "\n").first { $0.hasPrefix(Self.cutShort) }
        stage.narrator.say("   \(line ?? "")")
        stage.narrator.claim(
            "it is counted apart from good ones, since the origin had been told pass",
            line?.hasSuffix(" 1") == true
        )
    }

    private func signedUpload(_ photo: [UInt8], _ stage: Stage) throws -> Call {
        let challenge = try stage.phone.challenge("assertion")
        var call = Call("PUT", "/v1/photos/sunset", content: photo)
        call.isChunked = true
        return stage.phone.signed(call, challenge)
    }
}
