import AppAttest
import Cryptography
import Expectations
import KeyStore
import SoftwareAuthenticator
import Telemetry
import Testing
import Verification

@testable import Services

/// What the services of the enrolment cost the client's address.
@Suite struct EnrolmentServiceTests {
    private func ask(_ service: any Service, _ document: String, _ fixture: EnrolmentFixture)
        -> ServiceResult?
    {
        let request = ServiceRequest(
            content: Array(document.utf8),
            now: fixture.now,
            tick: fixture.tick
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
        let fixture = try EnrolmentFixture()
        let service = ChallengeService(enrolment: fixture.enrolment)
        let result = try #require(ask(service, document, fixture))
        expectEqual(result.callsOwed, owed)
        #expect(!result.verifiedInVain)
    }

    @Test func `challenges come as JSON, with the seconds that they are good for`() throws {
        let fixture = try EnrolmentFixture()
        let service = ChallengeService(enrolment: fixture.enrolment)
        let result = try #require(ask(service, #"{"count":2}"#, fixture))
        let text = String(decoding: result.response.content, as: UTF8.self)
        expectEqual(result.response.status, 200)
        #expect(text.hasPrefix(#"{"challenges":[""#))
        #expect(text.hasSuffix(#""],"expires_in":300}"# + "\n"))
    }

    @Test func `a wrong attestation is a verification in vain, a used challenge is not`() throws {
        let fixture = try EnrolmentFixture()
        let key = Trial.device().makeKey()
        let service = KeyService(enrolment: fixture.enrolment)
        let challenge = try fixture.challenge()
        let rows: [(String, String, Bool)] = [
            ("x", "request-malformed", true),
            (
                EnrolmentFixture.document(key.keyID.base64, "AAAA", challenge),
                "attestation-malformed", true
            ),
            (
                fixture.document(key, challenge: challenge, damage: .otherNonce),
                "nonce-mismatch", true
            ),
            (fixture.document(key, challenge: "AQEA"), "challenge-unknown", false),
        ]
        for (document, reason, isInVain) in rows {
            let result = try #require(ask(service, document, fixture))
            expectEqual(result.response.outcome.reason, reason)
            expectEqual(result.verifiedInVain, isInVain)
        }
    }

    @Test func `an attestation over the rate of examinations is counted as throttled`() throws {
        let fixture = try EnrolmentFixture {
            $0.examinationsPerSecond = 1
            $0.examinationsBurst = 0
        }
        let key = Trial.device().makeKey()
        let service = KeyService(enrolment: fixture.enrolment)
        // The first try of a challenge is free.
        let document = EnrolmentFixture.document(key.keyID.base64, "AAAA", try fixture.challenge())
        for _ in 0..<2 { expectEqual(ask(service, document, fixture)?.counter, nil) }
        let throttled = try #require(ask(service, document, fixture))
        expectEqual(throttled.response.outcome, .notEnrolled(.enrolmentThrottled))
        expectEqual(throttled.counter, .enrolmentsThrottled)
        #expect(!throttled.verifiedInVain)
    }
}
