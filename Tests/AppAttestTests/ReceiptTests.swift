import Cryptography
import Expectations
import Testing

@testable import AppAttest

@Suite struct ReceiptTests {
    private let authority = TestAuthority()

    private func verified(
        _ bytes: [UInt8],
        freshness: UnverifiedReceipt.Freshness? = nil
    ) throws -> VerifiedReceipt {
        try UnverifiedReceipt(bytes: bytes).verified(
            appIDs: [TestAuthority.appID],
            key: authority.device.publicKey,
            roots: [authority.root],
            freshness: freshness
        )
    }

    private func reason(
        _ change: (inout [(type: UInt32, value: [UInt8])]) -> Void
    ) -> ReceiptRefusal.Reason? {
        var fields = authority.receiptFields()
        change(&fields)
        return ReceiptRefusal.reason { _ = try verified(authority.receipt(fields)) }
    }

    @Test func `a receipt of a given root is accepted, with all its fields`() throws {
        let bytes = authority.receipt(authority.receiptFields())
        let receipt = try verified(bytes, freshness: .init(now: TestAuthority.now, secondsMax: 0))
        expectEqual(receipt.bytes, bytes)
        expectEqual(receipt.fields.kind, .receipt)
        expectEqual(receipt.fields.riskMetric, 7)
        expectEqual(receipt.fields.token, [2])
        expectEqual(receipt.fields.environment, "production")
        expectEqual(receipt.fields.notBefore, nil)
        expectEqual(receipt.fields.expirationTime?.nanoseconds, 500_000_000)
    }

    @Test func `a receipt comes in BER with indefinite lengths, as Apple writes them`() {
        let bytes = authority.receipt(authority.receiptFields())
        expectEqual(bytes.prefix(2), [0x30, 0x80])
    }

    @Test func `fields are judged strictly`() {
        expectEqual(reason { $0.append((99, [1])) }, nil)
        expectEqual(reason { $0.append((4, [1])) }, .malformed)
        for type: UInt32 in [2, 3, 6, 12] {
            expectEqual(reason { $0.removeAll { $0.type == type } }, .malformed)
        }
        let bad: [(UInt32, String)] = [
            (6, "attest"), (12, "2026-01-01 00:00:00Z"), (12, "2026-01-01T00:00:00+00:00"),
            (12, "2026-02-30T00:00:00Z"), (21, "soon"), (3, "certificate"), (7, ""),
        ]
        for (type, text) in bad {
            let reason = reason { fields in
                fields.removeAll { $0.type == type }
                fields.append((type, Array(text.utf8)))
            }
            expectEqual(reason, .malformed, "field \(type): \(text)")
        }
        expectEqual(
            reason { fields in
                fields.removeAll { $0.type == 2 }
                fields.append((2, Array("A.b".utf8)))
            },
            .appMismatch
        )
    }

    @Test(arguments: ["-1", "+1", "", "4294967296", "many", "1.5", " 1"])
    func `a metric that is no number is unknown, and the receipt good`(text: String) throws {
        var fields = authority.receiptFields()
        fields.removeAll { $0.type == 17 }
        fields.append((17, Array(text.utf8)))
        try expectEqual(verified(authority.receipt(fields)).fields.riskMetric, nil)
    }

    @Test func `the chain is judged when the receipt was made`() {
        let end = TestAuthority.now.advanced(bySeconds: 60)
        let atEnd = authority.receipt(authority.receiptFields(createdAt: end), signerNotAfter: end)
        expectEqual(ReceiptRefusal.reason { _ = try verified(atEnd) }, nil)
        let late = authority.receiptFields(createdAt: end.advanced(bySeconds: 1))
        let afterEnd = authority.receipt(late, signerNotAfter: end)
        expectEqual(ReceiptRefusal.reason { _ = try verified(afterEnd) }, .certificateExpired)
    }

    @Test func `a signer under the right root that is none for receipts is refused`() {
        let bytes = authority.receipt(authority.receiptFields(), signerIsMarked: false)
        expectEqual(ReceiptRefusal.reason { _ = try verified(bytes) }, .certificateUntrusted)
    }

    @Test func `content changed after it was signed is refused by the signature`() throws {
        var bytes = authority.receipt(authority.receiptFields())
        let appID = Array("RECEIPT".utf8)
        let place = try #require(bytes.firstRange(of: appID))
        bytes.replaceSubrange(place, with: Array("ATTEST".utf8) + [0x20])
        // "ATTEST " is no kind: malformed. The metric is what a client would like to change.
        expectEqual(ReceiptRefusal.reason { _ = try verified(bytes) }, .malformed)
        bytes = authority.receipt(authority.receiptFields())
        let metric = try #require(
            bytes.firstRange(of: [0x02, 0x01, 0x11, 0x02, 0x01, 0x01, 0x04, 0x01])
        )
        bytes[metric.upperBound] = UInt8(ascii: "1")
        expectEqual(ReceiptRefusal.reason { _ = try verified(bytes) }, .signatureMismatch)
    }
}
