import AppAttest
import Cryptography
import Expectations
import SoftwareAuthenticator
import Testing

/// Receipts that software makes, each wrong in one way, judged as the answer to a renewal.
@Suite struct RenewedReceiptTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let hash = SHA256.digest(of: [7]).array

    private let key: SoftwareKey
    private let root: X509Certificate

    init() {
        let authority = SoftwareAuthority(seed: [1, 5], madeAt: Self.now)
        root = authority.root
        key = SoftwareDevice(
            authority: authority,
            appID: "ABCDE12345.com.example.shop",
            environment: .production,
            shape: .beforeTwentySeven
        ).makeKey()
    }

    private func renewed(
        _ bytes: [UInt8],
        previous: UnixTime? = now.advanced(bySeconds: -86_400),
        secondsMax: Int64 = 300
    ) throws(ReceiptRefusal) -> RenewedReceipt {
        try UnverifiedReceipt(bytes: bytes).renewed(
            appIDs: [key.device.appID],
            key: key.publicKey,
            roots: [root],
            exchange: UnverifiedReceipt.Exchange(
                environment: .production,
                previousCreation: previous,
                freshness: .init(now: Self.now, secondsMax: secondsMax)
            )
        )
    }

    private func made(_ fields: [UInt32: String?]) -> [UInt8] {
        key.receipt(
            .refreshed(riskMetric: 3),
            clientDataHash: Self.hash,
            at: Self.now,
            replacing: fields
        )
    }

    private func reason(_ fields: [UInt32: String?]) -> ReceiptRefusal.Reason? {
        ReceiptRefusal.reason { _ = try renewed(made(fields)) }
    }

    private static func days(_ count: Int64, _ seconds: Int64 = 0) -> String {
        now.advanced(bySeconds: count * 86_400 + seconds).iso8601
    }

    @Test func `a renewed receipt is accepted with its period and its metric`() throws {
        let receipt = try renewed(made([:]))
        expectEqual(receipt.riskMetric, 3)
        expectEqual(receipt.notBefore, Self.now.advanced(bySeconds: 86_400))
        expectEqual(receipt.expirationTime, Self.now.advanced(bySeconds: 90 * 86_400))
        expectEqual(receipt.receipt.fields.kind, .receipt)
        // When it is not known which was sent, any is newer.
        try expectEqual(renewed(made([:]), previous: nil).riskMetric, 3)
    }

    @Test(arguments: ReceiptDamage.allCases)
    func `each of Apple's six checks is made of a renewed receipt`(damage: ReceiptDamage) {
        let bytes = key.receipt(
            .refreshed(riskMetric: 3),
            clientDataHash: Self.hash,
            at: Self.now,
            damage: damage
        )
        expectEqual(ReceiptRefusal.reason { _ = try renewed(bytes) }, damage.refusal)
    }

    @Test func `an attestation's receipt is no renewed one`() {
        expectEqual(reason([6: "ATTEST"]), .kindMismatch)
        let attest = key.receipt(.attest, clientDataHash: Self.hash, at: Self.now)
        expectEqual(ReceiptRefusal.reason { _ = try renewed(attest) }, .kindMismatch)
    }

    @Test func `a receipt of the other environment, or of none, is refused`() {
        expectEqual(reason([7: "sandbox"]), .environmentMismatch)
        expectEqual(reason([7: "Production"]), .environmentMismatch)
        expectEqual(reason([7: String?.none]), .environmentMismatch)
    }

    @Test func `a receipt that is not newer than the one that was sent is refused`() {
        for (seconds, expected) in [
            (-1, nil), (0, ReceiptRefusal.Reason.notNewer), (1, .notNewer),
        ] {
            let previous = Self.now.advanced(bySeconds: Int64(seconds))
            let reason = ReceiptRefusal.reason { _ = try renewed(made([:]), previous: previous) }
            expectEqual(reason, expected, "\(seconds)")
        }
    }

    @Test func `a receipt without a period, or with an impossible one, is refused`() {
        let good: [[UInt32: String?]] = [
            [19: Self.days(0)], [19: Self.days(30)], [21: Self.days(1, 1)], [21: Self.days(400)],
        ]
        for fields in good { expectEqual(reason(fields), nil, "\(fields)") }
        let bad: [[UInt32: String?]] = [
            [19: String?.none], [21: String?.none], [19: String?.none, 21: String?.none],
            [19: Self.days(0, -1)], [19: Self.days(30, 1)], [21: Self.days(1)],
            [21: Self.days(0)], [21: Self.days(-90)], [21: Self.days(400, 1)],
            [19: Self.days(9), 21: Self.days(9)], [21: "9999-12-31T23:59:59Z"],
        ]
        for fields in bad { expectEqual(reason(fields), .periodImplausible, "\(fields)") }
    }

    @Test func `a receipt that has ended already is refused though its creation may be recent`() {
        // The authority's certificates begin a day before `now`, which is the shortest period.
        let made = made([12: Self.days(-1), 19: Self.days(-1, 1), 21: Self.days(0)])
        let before = Self.now.advanced(bySeconds: -3 * 86_400)
        let reason = ReceiptRefusal.reason {
            _ = try renewed(made, previous: before, secondsMax: 9 * 86_400)
        }
        expectEqual(reason, .periodImplausible)
    }

    @Test func `an absent or absurd metric is unknown, and the receipt good`() throws {
        for (text, metric) in [
            ("0", 0), ("15", 15), ("1000000", 1_000_000), ("1000001", nil), ("4294967296", nil),
            ("-3", nil), ("", nil), (nil, nil),
        ] as [(String?, UInt32?)] {
            try expectEqual(renewed(made([17: text])).riskMetric, metric, "\(text ?? "absent")")
        }
    }
}
