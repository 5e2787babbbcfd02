import Cryptography
import KeyCatalog
import SQLiteKeyStore
import SoftwareAuthenticator

/// A phone is lost.
struct RevokedKey: Step {
    let title = "A revoked key is refused at once"

    func play(on stage: Stage) throws(DemoError) {
        var lost = Phone(stage.anotherDevice.makeKey(), gateway: stage.port)
        let enrolment = lost.enrolment(try lost.challenge("enrolment"), at: Stage.now)
        guard try enrolment.send(to: stage.port).status == 201 else {
            throw DemoError("the second phone can't be enrolled")
        }
        let before = try stage.exchange(try order(&lost))
        stage.narrator.originSaw(try stage.origin.next())
        stage.narrator.claim("a second phone is admitted", before.status == 200)

        stage.narrator.say("   $ portcullis keys revoke --config portcullis.yaml \(lost.keyID)")
        do throws(StoreProblem) {
            let keys = try KeyAdministration(path: stage.folder.file("portcullis.db"))
            _ = try keys.revoke(lost.key.keyID, ChangeNote(now: Stage.now.seconds))
        } catch {
            throw DemoError("\(error)")
        }
        let after = try stage.exchange(try order(&lost))
        stage.narrator.claim(
            "from that moment on: 403 key-revoked, without a restart",
            after.status == 403 && after.problem("reason") == "key-revoked"
        )
        let again = lost.enrolment(try lost.challenge("enrolment"), at: Stage.now)
        let answer = try stage.exchange(again)
        stage.narrator.claim(
            "nor can it be enrolled again",
            answer.status == 403 && answer.problem("reason") == "key-revoked"
        )
        stage.claimOriginSawNothing()
    }

    private func order(_ phone: inout Phone) throws(DemoError) -> Call {
        let challenge = try phone.challenge("assertion")
        let order = Call("POST", "/v1/orders", content: Array(#"{"item":"lamp"}"#.utf8))
        return phone.signed(order, challenge)
    }
}
