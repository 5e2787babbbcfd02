import Testing
import Verification

@Suite struct RefusalTests {
    /// The table of the wire, written a second time by hand: renaming or moving one is a break.
    static let statuses: [(Int, [String])] = [
        (
            401,
            [
                "assertion-missing", "challenge-missing", "challenge-unknown", "challenge-expired",
                "challenge-spent", "counter-replayed", "key-unknown",
            ]
        ),
        (
            400,
            [
                "assertion-malformed", "digest-missing", "digest-mismatch", "attestation-malformed",
                "request-malformed", "signed-field-repeated", "client-data-ambiguous",
            ]
        ),
        (
            403,
            [
                "signature-mismatch", "app-mismatch", "environment-mismatch", "category-refused",
                "version-refused", "key-revoked", "certificate-untrusted", "certificate-expired",
                "nonce-mismatch", "key-id-mismatch", "access-control-mismatch", "counter-not-zero",
                "receipt-refused", "risk-exceeded",
                "device-flagged", "unsupported",
            ]
        ),
        (413, ["content-too-large"]), (404, ["no-rule"]),
        (429, ["enrolment-throttled", "address-throttled", "address-held"]),
        (503, ["store-unavailable", "challenges-exhausted", "held-full", "spill-failed"]),
    ]

    @Test(arguments: statuses)
    func `every reason has its status`(status: Int, reasons: [String]) throws {
        for reason in reasons {
            #expect(try #require(Refusal(rawValue: reason)).row.status == status)
        }
    }

    @Test func `no reason is missing from the table`() {
        let named = Set(Self.statuses.flatMap(\.1))
        #expect(Set(Refusal.allCases.map(\.rawValue)) == named)
    }

    @Test func `a 401 names the scheme and hands over a challenge`() {
        let problem = Problem(.counterReplayed, challenge: "AQEA")
        #expect(problem.status == 401)
        let fields = Dictionary(uniqueKeysWithValues: problem.fields.map { ($0.name, $0.value) })
        #expect(
            fields["WWW-Authenticate"] == #"AppAttest error="counter-replayed", challenge="AQEA""#
        )
        #expect(fields["App-Attest-Challenge"] == "AQEA")
        #expect(problem.body.contains(#""reason":"counter-replayed""#))
    }

    @Test func `an unknown key is sent to enrol, not to sign again`() {
        let problem = Problem(.keyUnknown, challenge: "AQEA")
        #expect(!problem.fields.contains { $0.name == "App-Attest-Challenge" })
        #expect(problem.body.contains(#""next":"enrol""#))
    }

    @Test func `later says when`() {
        let problem = Problem(.enrolmentThrottled, retryAfter: 7)
        #expect(problem.fields.contains { $0.name == "Retry-After" && $0.value == "7" })
    }
}

@Suite struct ThrottleTests {
    @Test func `a burst is admitted, then one at a time as tokens flow in`() {
        let throttle = Throttle(perSecond: 10, burst: 3)
        let start: UInt64 = 5_000_000_000
        for _ in 0..<3 { #expect(throttle.take(now: start) == nil) }
        #expect(throttle.take(now: start) == 100_000_000)
        #expect(throttle.take(now: start + 99_999_999) == 1)
        #expect(throttle.take(now: start + 100_000_000) == nil)
        #expect(throttle.take(now: start + 100_000_000) == 100_000_000)
    }

    @Test func `a clock that stands at zero is no trap`() {
        let throttle = Throttle(perSecond: 0, burst: 0)
        #expect(throttle.take(now: 0) == nil)
        #expect(throttle.take(now: 0) == 1_000_000_000)
    }
}
