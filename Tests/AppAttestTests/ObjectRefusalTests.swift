import Expectations
import Foundation
import Testing

@testable import AppAttest

@Suite struct ObjectRefusalTests {
    @Test func `a refusal explains itself through Foundation, and is compared by its reason`() {
        let error: any Error =
            #expect(throws: AttestationRefusal.self) {
                try UnverifiedAttestation(bytes: [0xA0])
            } ?? AttestationRefusal(.nonceMismatch, "none was thrown")
        expectEqual(
            error.localizedDescription,
            "The bytes are not an App Attest attestation object."
        )
        let localized = error as? any LocalizedError
        expectEqual(localized?.failureReason, "not fmt, attStmt, authData")
        expectEqual(localized?.recoverySuggestion?.contains("attestKey"), true)
        expectEqual("\(error)", "attestation-malformed: not fmt, attStmt, authData")
        expectEqual(AttestationRefusal(.malformed, "a"), AttestationRefusal(.malformed, "b"))
        #expect(AttestationRefusal(.malformed, "a") != AttestationRefusal(.appMismatch, "a"))
        expectEqual(Set([ReceiptRefusal(.tooOld, "a"), ReceiptRefusal(.tooOld, "b")]).count, 1)
    }

    private func texts<Reason: RefusalReason>(of _: Reason.Type) -> [String] {
        Reason.allCases.flatMap { [$0.summary, $0.nextStep] }
    }

    @Test func `each reason of the three objects has a sentence, and a next step of its own`() {
        let texts =
            texts(of: AttestationRefusal.Reason.self) + texts(of: AssertionRefusal.Reason.self)
            + texts(of: ReceiptRefusal.Reason.self)
        for text in texts {
            #expect(text.hasSuffix("."), "\(text)")
            expectEqual(text.first?.isUppercase, true, "\(text)")
        }
        expectEqual(Set(AssertionRefusal.Reason.allCases.map(\.summary)).count, 6)
        expectEqual(Set(AttestationRefusal.Reason.allCases.map(\.summary)).count, 11)
        expectEqual(Set(ReceiptRefusal.Reason.allCases.map(\.summary)).count, 11)
    }
}
