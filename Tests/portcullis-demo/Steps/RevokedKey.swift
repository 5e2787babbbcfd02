import Cryptography
import KeyStore
import SQLiteKeyStore
import SoftwareAuthenticator

/// A phone is lost.
struct RevokedKey: Step {
    let title = "A revoked key is refused at once"

    func play(on stage: Stage) throws {
        var lost = try stage.enrolled(stage.anotherDevice.makeKey())
        let before = try stage.exchange(try order(&lost))
        stage.narrator.originSaw(try stage.origin.next())
        stage.narrator.claim("a second phone is admitted", before.status == 200)

        stage.narrator.say("   $ portcullis keys revoke --config portcullis.yaml \(lost.keyID)")
        do throws(StoreProblem) {
            let keys = try KeyAdministration(path: stage.folder.file("portcullis.db"))
            _ = try keys.revoke(lost.key.keyID, ChangeNote(now: Stage.now.seconds))
        } catch {
            throw StoryFault("\(error)")
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

    private func order(_ phone: inout Phone) throws -> Call {
        let challenge = try phone.challenge("assertion")
        return phone.signed(.order, challenge)
    }
}

/// What operators see of these steps.
struct CountedVerdicts: Step {
    let title = "It is all counted"

    func play(on stage: Stage) throws {
        let page = try Call.metrics.send(to: stage.adminPort).text
        let lines = page.split(separator: "\n").filter {
            $0.hasPrefix("portcullis_verdicts_total{")
        }
        stage.narrator.say(
            "   $ curl http://127.0.0.1:\(stage.adminPort)/metrics | grep verdicts_total"
        )
        for line in lines where line.contains("\"place-order\"") || line.contains("\"checkout\"") {
            stage.narrator.say("   \(line)")
        }
        // Over all platforms.
        func count(_ labels: String...) -> Int {
            lines.filter { line in labels.allSatisfy { line.contains("\"\($0)\"") } }
                .reduce(0) { $0 &+ ($1.split(separator: " ").last.flatMap { Int($0) } ?? 0) }
        }
        stage.narrator.claim(
            "two replays and one spent challenge, as told above",
            count("place-order", "counter-replayed") == 2
                && count("place-order", "challenge-spent") == 1
        )
        stage.narrator.claim(
            "\(stage.quarterRefusals) requests refused by the rule of a quarter, as counted here",
            count("checkout", "counter-replayed", "true") == stage.quarterRefusals
        )
        stage.narrator.claim(
            "no request reached the origin but those told above",
            stage.origin.untoldCount == 0
        )
    }
}
