import Cryptography
import Expectations
import TestSupport
import Testing

@testable import AppAttest

@Suite
struct ReceiptVectorTests {
    @Test(arguments: SharedVectors.attestations)
    func `the receipt inside an attestation verifies on its own`(vector: AttestationVector) throws {
        let attestation = try AttestationCase(vector).verified()
        let receipt = try UnverifiedReceipt(bytes: attestation.receipt)
        func verified(freshness: UnverifiedReceipt.Freshness?) throws -> VerifiedReceipt {
            try receipt.verified(
                appIDs: ["other", vector.appId],
                key: attestation.publicKey,
                roots: [vector.receiptRoot],
                freshness: freshness
            )
        }
        guard vector.checked.receipt.chainToAppleRootCaG3 else {
            // One byte of its signing certificate was altered: in 2026-01-14-mikedan37-dev when it
            // was published.
            expectEqual(
                ReceiptRefusal.reason { _ = try verified(freshness: nil) },
                .certificateUntrusted
            )
            return
        }
        let now = try moment(vector.verifyAt)
        let fields = try verified(freshness: .init(now: now, secondsMax: 300)).fields
        expectEqual(fields.kind, .attest)
        expectEqual(fields.creationTime, now)
        #expect(fields.clientHash == (try bytes(vector.clientDataHashB64)))
        expectEqual(fields.riskMetric, nil)
        expectEqual(fields.expirationTime, now.advanced(bySeconds: 90 * 86_400))
        let late = UnverifiedReceipt.Freshness(now: now.advanced(bySeconds: 301), secondsMax: 300)
        expectEqual(ReceiptRefusal.reason { _ = try verified(freshness: late) }, .tooOld)
        let early = UnverifiedReceipt.Freshness(now: now.advanced(bySeconds: -301), secondsMax: 300)
        expectEqual(ReceiptRefusal.reason { _ = try verified(freshness: early) }, .tooOld)
    }

    @Test(arguments: SharedVectors.receipts)
    func `a refreshed receipt verifies and says what Apple's server said`(
        vector: ReceiptVector
    ) throws {
        let receipt = try UnverifiedReceipt(bytes: try bytes(vector.receiptB64)).verified(
            appIDs: [vector.appId],
            key: try publicKey(vector.publicKeyX963B64),
            roots: [vector.receiptRoot],
            freshness: nil
        )
        expectEqual(receipt.fields.kind.rawValue, vector.receiptType)
        #expect(receipt.fields.creationTime == (try moment(vector.creationTime)))
        expectEqual(receipt.fields.riskMetric.map(String.init), vector.riskMetric)
        #expect(receipt.fields.notBefore == (try vector.notBefore.map(moment)))
        #expect(receipt.fields.expirationTime == (try moment(vector.expiration)))
    }

    @Test(arguments: SharedVectors.receipts)
    func `a refreshed receipt is one that a renewal may bring, each check with its own value`(
        vector: ReceiptVector
    ) throws {
        let receipt = try UnverifiedReceipt(bytes: try bytes(vector.receiptB64))
        let key = try publicKey(vector.publicKeyX963B64)
        let created = try moment(vector.creationTime)
        let own: AttestationEnvironment =
            receipt.fields.environment == "production" ? .production : .development
        func renewed(
            _ environment: AttestationEnvironment?,
            newerThan previous: UnixTime?
        ) throws(ReceiptRefusal) -> RenewedReceipt {
            try receipt.renewed(
                appIDs: [vector.appId],
                key: key,
                roots: [vector.receiptRoot],
                exchange: UnverifiedReceipt.Exchange(
                    environment: environment,
                    previousCreation: previous,
                    freshness: .init(now: created.advanced(bySeconds: 2), secondsMax: 300)
                )
            )
        }
        let before = created.advanced(bySeconds: -1)
        let good = try renewed(own, newerThan: before)
        expectEqual(good.riskMetric.map(String.init), vector.riskMetric)
        #expect(good.notBefore == (try vector.notBefore.map(moment)))
        #expect(good.expirationTime == (try moment(vector.expiration)))
        try expectEqual(renewed(nil, newerThan: nil).riskMetric, good.riskMetric)
        let other: AttestationEnvironment = own == .production ? .development : .production
        expectEqual(
            ReceiptRefusal.reason { _ = try renewed(other, newerThan: before) },
            .environmentMismatch
        )
        expectEqual(ReceiptRefusal.reason { _ = try renewed(own, newerThan: created) }, .notNewer)
    }

    @Test(arguments: SharedVectors.attestations)
    func `the receipt inside an attestation is none that a renewal may bring`(
        vector: AttestationVector
    ) throws {
        guard vector.checked.receipt.chainToAppleRootCaG3 else { return }
        let attestation = try AttestationCase(vector).verified()
        let receipt = try UnverifiedReceipt(bytes: attestation.receipt)
        let reason = ReceiptRefusal.reason {
            _ = try receipt.renewed(
                appIDs: [vector.appId],
                key: attestation.publicKey,
                roots: [vector.receiptRoot],
                exchange: .init(environment: nil, previousCreation: nil, freshness: nil)
            )
        }
        expectEqual(reason, .kindMismatch)
    }

    @Test(arguments: SharedVectors.receipts)
    func `another app, another key and another root are refused, each by its check`(
        vector: ReceiptVector
    ) throws {
        let receipt = try UnverifiedReceipt(bytes: try bytes(vector.receiptB64))
        let key = try publicKey(vector.publicKeyX963B64)
        let roots = [vector.receiptRoot]
        func reason(_ appID: String, _ key: P256PublicKey, _ roots: [X509Certificate])
            -> ReceiptRefusal.Reason?
        {
            ReceiptRefusal.reason {
                _ = try receipt.verified(appIDs: [appID], key: key, roots: roots, freshness: nil)
            }
        }
        expectEqual(reason("A.b", key, roots), .appMismatch)
        expectEqual(reason(vector.appId, P256PrivateKey().publicKey, roots), .keyMismatch)
        // Receipts do not chain to the root of attestations.
        expectEqual(reason(vector.appId, key, [AppleRoots.appAttestation]), .certificateUntrusted)
    }

    @Test(arguments: SharedVectors.receipts.prefix(1))
    func `no truncation verifies, and no flipped bit traps`(vector: ReceiptVector) throws {
        var object = try bytes(vector.receiptB64)
        let key = try publicKey(vector.publicKeyX963B64)
        let roots = [vector.receiptRoot]
        func reason(_ object: [UInt8]) -> ReceiptRefusal.Reason? {
            ReceiptRefusal.reason {
                _ = try UnverifiedReceipt(bytes: object).verified(
                    appIDs: [vector.appId],
                    key: key,
                    roots: roots,
                    freshness: nil
                )
            }
        }
        for count in 0..<object.count {
            expectEqual(reason(Array(object[..<count])), .malformed)
        }
        expectEqual(reason(object + [0]), .malformed)
        for index in stride(from: 0, to: object.count, by: 3) {
            object[index] ^= 1 << UInt8(index % 8)
            _ = reason(object)
            object[index] ^= 1 << UInt8(index % 8)
        }
    }
}
