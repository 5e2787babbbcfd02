import Expectations
import HTTPWire
import Testing
import Verification

@testable import Services

@Suite struct LocalRowTests {
    /// The table of the wire, written a second time by hand: renaming or moving one is a break.
    static let statuses: [(Int, [String])] = [
        (
            401,
            [
                "assertion-missing", "challenge-missing", "challenge-unknown", "challenge-expired",
                "challenge-spent", "counter-replayed", "key-unknown", "session-unknown",
                "session-expired", "session-replayed", "session-mismatch", "session-refused",
                "key-expired", "proof-missing", "proof-invalid", "proof-expired", "proof-spent",
            ]
        ),
        (
            400,
            [
                "assertion-malformed", "digest-missing", "digest-mismatch", "attestation-malformed",
                "request-malformed", "signed-field-repeated", "client-data-ambiguous",
                "path-ambiguous", "connection-nomination", "method-case",
                "device-token-missing", "device-token-malformed", "device-token-used",
                "proof-malformed",
            ]
        ),
        (
            403,
            [
                "signature-mismatch", "app-mismatch", "environment-mismatch", "category-refused",
                "version-refused", "key-revoked", "certificate-untrusted", "certificate-expired",
                "nonce-mismatch", "key-id-mismatch", "access-control-mismatch", "counter-not-zero",
                "receipt-refused", "risk-exceeded", "risk-unknown",
                "device-flagged", "unsupported", "preflight", "certificate-revoked",
                "key-unsuitable", "hardware-refused", "boot-refused", "app-unknown",
                "signer-mismatch", "provisioning-refused", "patch-level-refused", "proof-refused",
            ]
        ),
        (413, ["content-too-large", "content-unseen"]), (404, ["no-rule"]),
        (
            429,
            [
                "enrolment-throttled", "enrolment-not-yet", "address-throttled", "address-held",
                "device-throttled", "key-held", "attester-throttled", "proof-throttled",
                "key-throttled",
            ]
        ),
        (
            503,
            [
                "store-unavailable", "challenges-exhausted", "held-full", "spill-failed",
                "device-check-unavailable", "status-list-unavailable", "proof-unavailable",
            ]
        ),
    ]

    @Test(arguments: statuses)
    func `every reason has its status`(status: Int, reasons: [String]) throws {
        for reason in reasons {
            expectEqual(
                LocalOutcome.refused(try #require(Refusal(rawValue: reason))).row.status,
                status
            )
        }
    }

    /// What a client does next that was refused at `…/keys`. Apple attests a key once, so "sign
    /// again" is no answer there.
    @Test(arguments: [
        (
            "enrol",
            [
                "challenge-unknown", "challenge-expired", "challenge-spent", "nonce-mismatch",
                "certificate-expired", "counter-not-zero", "app-unknown",
            ]
        ),
        (
            "retry-later",
            [
                "enrolment-throttled", "enrolment-not-yet", "address-throttled",
                "store-unavailable", "challenges-exhausted", "attester-throttled",
                "status-list-unavailable",
            ]
        ),
        (
            "fix-client",
            [
                "request-malformed", "attestation-malformed", "key-id-mismatch", "key-unsuitable",
            ]
        ),
        (
            "none",
            [
                "app-mismatch", "environment-mismatch", "category-refused", "version-refused",
                "key-revoked", "certificate-untrusted", "access-control-mismatch",
                "receipt-refused", "certificate-revoked", "hardware-refused", "boot-refused",
                "signer-mismatch", "provisioning-refused", "patch-level-refused",
            ]
        ),
    ])
    func `an enrolment that is refused says what helps`(step: String, reasons: [String]) throws {
        for reason in reasons {
            let refusal = try #require(Refusal(rawValue: reason))
            let row = LocalOutcome.notEnrolled(refusal).row
            expectEqual(row.nextStep.rawValue, step, "\(reason)")
            expectEqual(row.status, LocalOutcome.refused(refusal).row.status)
        }
    }

    @Test func `no refused enrolment says to sign again`() {
        for refusal in Refusal.allCases {
            #expect(LocalOutcome.notEnrolled(refusal).row.nextStep != .signAgain)
        }
    }

    @Test func `no reason is missing from the table`() {
        let named = Set(Self.statuses.flatMap(\.1))
        expectEqual(Set(Refusal.allCases.map(\.rawValue)), named)
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

    @Test(arguments: [
        (502, ["origin-unreachable", "origin-closed", "response-malformed"]),
        (502, ["too-many-interim-responses"]), (503, ["out-of-descriptors", "origin-down"]),
        (503, ["origin-queue-full", "origin-queue-timeout"]), (504, ["origin-timeout"]),
    ])
    func `every failure of an origin has its status`(status: Int, reasons: [String]) throws {
        for reason in reasons {
            let failure = try #require(OriginFailure(rawValue: reason))
            expectEqual(LocalOutcome.failed(failure).row.status, status)
        }
    }

    @Test(arguments: [
        (508, ["loop-detected"]), (408, ["head-timeout", "body-timeout"]),
        (404, ["no-such-endpoint", "page-unknown", "no-such-server", "no-such-rule"]),
        (409, ["rule-verifies-nothing", "upgrade-running"]),
        (401, ["token-missing", "token-wrong"]),
        (403, ["host-refused", "cross-site"]),
        (400, ["question-unclear", "protocol-refused", "field-disguised"]),
        (405, ["method-not-allowed", "method-refused"]), (413, ["content-refused"]),
        (
            503,
            [
                "gather-timeout", "draining", "store-degraded", "origins-down", "rollout-unsaved",
                "upgrade-refused",
            ]
        ),
    ])
    func `every fault has its status`(status: Int, reasons: [String]) throws {
        for reason in reasons {
            let fault = try #require(LocalFault(rawValue: reason))
            expectEqual(LocalOutcome.fault(fault).row.status, status)
        }
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

    @Test func `every title is a sentence`() {
        for outcome in Self.all where outcome.row.blame != .nobody {
            #expect(outcome.row.title.hasSuffix("."))
            expectEqual(outcome.row.title.first?.isUppercase, true)
        }
    }
}
