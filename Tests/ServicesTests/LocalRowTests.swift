import Expectations
import Foundation
import HTTPWire
import Testing
import Verification

@testable import Services

@Suite struct LocalRowTests {
    /// The rows that Sources/docs/stability.md promises, as a test of the texts compares them too.
    private static func promised() throws -> [String] {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let list = tests.appending(path: "Surfaces/reasons.tsv")
        return try String(contentsOf: list, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    @Test func `each reason that is promised has its status, its blame and its next step`() throws {
        let rows = Self.all.filter { $0.row.blame != .nobody }.map { outcome in
            let row = outcome.row
            // A preflight with this finding is forwarded.
            let status = outcome == .refused(.preflight) ? "never sent" : "\(row.status)"
            let next = row.nextStep == .unsaid ? "" : row.nextStep.rawValue
            return [outcome.reason, status, row.blame.rawValue, next].joined(separator: "\t")
        }
        let promised = try Self.promised()
        #expect(promised.count > 150)
        expectEqual(Set(promised).subtracting(rows), [], "renaming or moving one is a break")
    }

    /// Nothing is signed at `…/keys`, and Apple attests a key once.
    @Test(arguments: Refusal.allCases)
    func `a refused enrolment says what a refused request does, but to sign again`(
        _ refusal: Refusal
    ) {
        let (request, enrolment) = (
            LocalOutcome.refused(refusal).row, LocalOutcome.notEnrolled(refusal).row
        )
        expectEqual(enrolment.status, request.status)
        expectEqual(
            enrolment.nextStep,
            request.nextStep == .signAgain ? .enrol : request.nextStep
        )
    }

    @Test(arguments: Malformed.Reason.allCases)
    func `every malformed request has a status, a title and a reason phrase`(
        _ reason: Malformed.Reason
    ) {
        let row = LocalOutcome.malformed(reason).row
        #expect([400, 414, 417, 431, 501, 502, 505].contains(row.status))
        #expect(!row.title.isEmpty)
        #expect(ReasonPhrase.of(row.status).utf8CodeUnitCount > 0)
    }

    /// Every outcome there is.
    static let all: [LocalOutcome] =
        Refusal.allCases.map(LocalOutcome.refused)
        + Refusal.allCases.map(LocalOutcome.notEnrolled)
        + Malformed.Reason.allCases.map(LocalOutcome.malformed)
        + OriginFailure.allCases.map(LocalOutcome.failed)
        + LocalFault.allCases.map(LocalOutcome.fault)
        + LocalSuccess.allCases.map(LocalOutcome.done)

    @Test func `a status brings the field with it that HTTP asks for`() {
        for outcome in Self.all {
            let row = outcome.row
            switch row.status {
            // Operators show a token; everybody else signs.
            case 401 where [.fault(.tokenMissing), .fault(.tokenWrong)].contains(outcome):
                expectEqual(row.companion, .bearer)
            case 401: expectEqual(row.companion, .authenticate)
            // It says of which bytes another signature would be taken.
            case 403 where outcome.reason == "signature-mismatch":
                expectEqual(row.companion, .authenticate)
            case 405: expectEqual(row.companion, .allow)
            case 429, 503: #expect(row.companion == .retryAfter && row.nextStep == .retryLater)
            default: expectEqual(row.companion, .none)
            }
        }
    }

    @Test func `every title is a sentence, and so is what operators read`() {
        for outcome in Self.all where outcome.row.blame != .nobody {
            #expect(outcome.row.title.hasSuffix(".") && outcome.meaning.hasSuffix("."))
            expectEqual(outcome.row.title.first?.isUppercase, true)
            expectEqual(outcome.meaning.first(where: \.isLetter)?.isUppercase, true, "\(outcome)")
        }
    }
}
