import AppAttest
import Encodings
import Expectations
import RequestBinding
import Signatures
import TestSupport
import Testing
import Tokens

@testable import KeyStore

/// The form in which a process asks its successor.
@Suite struct DeciderQuestionTests {
    private struct NoChallenge: Error {}

    private static func questions() throws -> [DeciderQuestion] {
        let keyID = KeyRecord.sample(1).keyID
        let issuer = ChallengeIssuer(capacity: 1_024)
        let text = issuer.issue(.assertion, now: 0)
        guard case .valid(let serial) = issuer.examine(text.span, purpose: .assertion, now: 0)
        else { throw NoChallenge() }
        let evidence = VerifiedEvidence(
            app: AppIDHash(appID: "ABCDE12345.com.example.shop"),
            counter: SignCounter(rawValue: 9)
        )
        let number = try #require(SequenceNumber(7))
        let uses = [
            CounterUse(
                of: keyID,
                counter: SignCounter(rawValue: .max),
                rule: .window(64),
                challenge: serial
            ),
            CounterUse(of: keyID, counter: nil, rule: .strict, challenge: nil),
        ]
        let digest = SHA256.digest(of: [1])
        return [
            .issue(.enrolment, now: .min), .examine([1, 2], .assertion, now: .max),
            .examine([], .enrolment, now: 0), .spend(serial), .takeBack(serial),
            .firstTry(serial), .find(keyID), .lookUp(keyID), .isEnrolling(keyID),
            .enrol(.sample(1), spending: nil), .enrol(.phone(2), spending: serial),
            .openSession(keyID, evidence, now: 1), .findSession([0, 255], now: 2),
            .admits([3], number), .use([], number), .spendToken(SpentToken(digest, end: 8)),
            .claim(digest, now: 6), .release(digest),
        ] + uses.map(DeciderQuestion.peek)
            + uses.flatMap { use in
                [true, false].map { .consume(use, now: 1, isAwaited: $0, usesMemory: !$0) }
            }
    }

    @Test func `a question is read as it was asked, and neither cut nor with more`() throws {
        for question in try Self.questions() {
            let bytes = question.bytes
            try expectEqual(DeciderQuestion(bytes).bytes, bytes)
            for count in bytes.indices {
                #expect(throws: ByteReader.Fault.self) {
                    try DeciderQuestion(Array(bytes[..<count]))
                }
            }
            #expect(throws: ByteReader.Fault.self) { try DeciderQuestion(bytes + [0]) }
        }
    }

    @Test func `no two questions have the same bytes`() throws {
        let questions = try Self.questions().map(\.bytes)
        expectEqual(Set(questions).count, questions.count)
    }
}
