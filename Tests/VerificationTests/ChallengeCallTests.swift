import Cryptography
import Expectations
import Testing
import Tokens
import Verification

@Suite struct ChallengeCallTests {
    /// The challenges of an answer and how long they are good.
    private func read(_ outcome: Enrolment.Outcome) throws -> (texts: [String], lifetime: Int64) {
        guard case .challenges(_, let texts, let lifetime) = outcome else { throw Trial.Absent() }
        return (texts, lifetime)
    }

    private func purpose(_ text: String, _ fixture: EnrolmentFixture) -> ChallengePurpose? {
        let bytes = Array(text.utf8)
        return ChallengePurpose.allCases.first { purpose in
            let found = fixture.issuer.examine(
                bytes.span,
                purpose: purpose,
                now: fixture.now.seconds
            )
            if case .valid = found { return true }
            return false
        }
    }

    @Test(arguments: [
        ("", ChallengePurpose.assertion, 1, 300), ("{}", .assertion, 1, 300),
        (#"{"purpose":"enrolment"}"#, .enrolment, 1, 3600),
        (#"{"count":8,"purpose":"assertion"}"#, .assertion, 8, 300),
        (#" {"purpose":"enrolment","count":3,"more":null} "#, .enrolment, 3, 3600),
    ])
    func `so many challenges of the purpose are handed out, each another`(
        document: String,
        purpose: ChallengePurpose,
        count: Int,
        lifetime: Int64
    ) throws {
        let fixture = try EnrolmentFixture()
        let found = try read(fixture.challenges(document))
        expectEqual(Set(found.texts).count, count)
        expectEqual(found.lifetime, lifetime)
        #expect(found.texts.allSatisfy { self.purpose($0, fixture) == purpose })
    }

    @Test(arguments: [
        "x", "[]", #"{"purpose":"other"}"#, #"{"purpose":1}"#, #"{"count":0}"#, #"{"count":9}"#,
        #"{"key_id":"AAAA"}"#, #"{"purpose":"enrolment","key_id":7}"#, #"{"count":-1}"#,
        #"{"count":"2"}"#, #"{"count":1.5}"#, #"{"count":1e0}"#,
        #"{"count":99999999999999999999}"#, #"{"count":2,"count":2}"#, #"{"count":2}}"#,
    ])
    func `what can't be read is refused as malformed`(document: String) throws {
        guard case .refuse(let refused) = try EnrolmentFixture().challenges(document) else {
            Issue.record("answered")
            return
        }
        expectEqual(refused.refusal, .requestMalformed)
    }
}
