import AppAttest
import Cryptography
import KeyStore
import SoftwareAuthenticator
import Telemetry
import Testing
import Verification

@testable import Services

/// What the services of the enrolment cost the client's address.
@Suite struct EnrolmentServiceTests {
    private func ask(_ service: any Service, _ document: String, _ desk: Desk) -> ServiceResult? {
        let request = ServiceRequest(
            content: Array(document.utf8),
            now: desk.now,
            tick: desk.tick
        )
        guard case .now(let result) = service.answer(request) else { return nil }
        return result
    }

    @Test(arguments: [
        ("", 0), (#"{"count":8}"#, 7), (#"{"purpose":"enrolment","count":3}"#, 2), ("x", 0),
    ])
    func `a call owes a token for every challenge beyond the first`(
        document: String,
        owed: Int
    ) throws {
        let desk = try Desk()
        let service = ChallengeService(enrolment: desk.enrolment)
        let result = try #require(ask(service, document, desk))
        #expect(result.callsOwed == owed)
        #expect(!result.verifiedInVain)
    }

    @Test func `challenges come as JSON, with the seconds that they are good for`() throws {
        let desk = try Desk()
        let service = ChallengeService(enrolment: desk.enrolment)
        let result = try #require(ask(service, #"{"count":2}"#, desk))
        let text = String(decoding: result.response.content, as: UTF8.self)
        #expect(result.response.status == 200)
        #expect(text.hasPrefix(#"{"challenges":[""#))
        #expect(text.hasSuffix(#""],"expires_in":300}"# + "\n"))
    }

    @Test func `a wrong attestation is a verification in vain, a used challenge is not`() throws {
        let desk = try Desk()
        let key = Trial.device().makeKey()
        let service = KeyService(enrolment: desk.enrolment) { _, _, completion in
            completion(.failed)
        }
        let challenge = try desk.challenge()
        let rows: [(String, String, Bool)] = [
            ("x", "request-malformed", true),
            (Desk.document(key.keyID.base64, "AAAA", challenge), "attestation-malformed", true),
            (
                desk.document(key, challenge: challenge, damage: .otherNonce),
                "nonce-mismatch", true
            ),
            (desk.document(key, challenge: "AQEA"), "challenge-unknown", false),
        ]
        for (document, reason, isInVain) in rows {
            let result = try #require(ask(service, document, desk))
            #expect(result.response.outcome.reason == reason)
            #expect(result.verifiedInVain == isInVain)
        }
    }

    @Test func `an attestation over the rate of examinations is counted as throttled`() throws {
        let desk = try Desk {
            $0.examinationsPerSecond = 1
            $0.examinationsBurst = 0
        }
        let key = Trial.device().makeKey()
        let service = KeyService(enrolment: desk.enrolment) { _, _, completion in
            completion(.failed)
        }
        // The first try of a challenge is free.
        let document = Desk.document(key.keyID.base64, "AAAA", try desk.challenge())
        for _ in 0..<2 { #expect(ask(service, document, desk)?.counter == nil) }
        let throttled = try #require(ask(service, document, desk))
        #expect(throttled.response.outcome == .notEnrolled(.enrolmentThrottled))
        #expect(throttled.counter == .enrolmentsThrottled)
        #expect(!throttled.verifiedInVain)
    }
}
