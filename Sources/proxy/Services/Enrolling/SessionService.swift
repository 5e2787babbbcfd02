import ByteCoding
import Challenges
import Cryptography
import JSONText
import Sessions
import Telemetry
import Verification

/// `POST …/sessions`: opens a session for the key that has signed the request.
struct SessionService: Service {
    let sessions: SessionTable
    let issuer: ChallengeIssuer

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        guard let grant = request.grant else {
            preconditionFailure("SessionService: asked by a request that has proved nothing")
        }
        let now = request.now.seconds
        let opened = sessions.open(grant.keyID, grant.assertion, now: now)
        var document = JSONWriter(.compact)
        document.object { document in
            document.member("session", String(decoding: opened.id, as: UTF8.self))
            document.member("secret", Base64.text(opened.secret.octets))
            document.member("expires_in", sessions.limits.lifetime)
            document.member("window", sessions.limits.window)
            // The requests may name the key. Before, that made them malformed.
            document.member("accepts_key_id", true)
        }
        var result = ServiceResult(
            LocalResponse(
                .created,
                "application/json",
                document.line,
                challenge: String(decoding: issuer.issue(.assertion, now: now), as: UTF8.self)
            )
        )
        result.counter = .sessionsOpened
        return .now(result)
    }
}
