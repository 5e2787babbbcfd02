import AppAttest
import Cryptography
import Expectations
import SoftwareAuthenticator
import Testing

@Suite struct ReceiptTests {
    private static let kinds: [ReceiptKind] = [.attest, .refreshed(riskMetric: 3)]

    @Test(arguments: Bench.shapes)
    func `the receipt in an attestation verifies under the same root`(_ shape: DeviceShape)
        throws
    {
        let bench = Bench(shape)
        let object = bench.key.attestation(clientDataHash: Bench.hash, at: Bench.now)
        let receipt = try bench.verifiedAttestation(object).receipt
        expectEqual(bench.receiptRefusal(receipt), nil)
        expectEqual(
            bench.receiptRefusal(receipt, roots: [AppleRoots.rootG3]),
            .certificateUntrusted
        )
        let fields = try UnverifiedReceipt(bytes: receipt).fields
        expectEqual(fields.kind, .attest)
        expectEqual(fields.clientHash, Bench.hash)
        expectEqual(fields.riskMetric, nil)
    }

    @Test func `a damaged receipt leaves the attestation good`() throws {
        let bench = Bench(.beforeTwentySeven)
        let object = bench.key.attestation(
            clientDataHash: Bench.hash,
            at: Bench.now,
            receiptDamage: .signature
        )
        let receipt = try bench.verifiedAttestation(object).receipt
        expectEqual(bench.receiptRefusal(receipt), .signatureMismatch)
    }

    @Test func `a refreshed receipt has a metric, and a day before the next`() throws {
        let bench = Bench(.beforeTwentySeven)
        let object = bench.key.receipt(
            .refreshed(riskMetric: 15),
            clientDataHash: Bench.hash,
            at: Bench.now
        )
        let fields = try UnverifiedReceipt(bytes: object).fields
        expectEqual(fields.kind, .receipt)
        expectEqual(fields.riskMetric, 15)
        expectEqual(fields.creationTime, Bench.now)
        expectEqual(fields.notBefore, Bench.now.advanced(bySeconds: 86_400))
        expectEqual(fields.expirationTime, Bench.now.advanced(bySeconds: 90 * 86_400))
        expectEqual(fields.environment, "production")
        // BER: indefinite length, as Apple's.
        #expect(object.starts(with: [0x30, 0x80]))
    }

    @Test(arguments: kinds, ReceiptDamage.allCases)
    func `each damage is refused for what it is`(_ kind: ReceiptKind, _ damage: ReceiptDamage) {
        let bench = Bench(.iOS27(category: .appStore, bundleVersion: "1"))
        let object = bench.key.receipt(
            kind,
            clientDataHash: Bench.hash,
            at: Bench.now,
            damage: damage
        )
        expectEqual(bench.receiptRefusal(object), damage.refusal)
    }

    @Test func `damage of each kind that a verifier knows can be done`() {
        // What only a renewed receipt can be refused for is made by replacing fields.
        let ofRenewal: Set<ReceiptRefusal.Reason> = [
            .kindMismatch, .environmentMismatch, .notNewer, .periodImplausible,
        ]
        expectEqual(
            Set(ReceiptDamage.allCases.map(\.refusal)).union(ofRenewal),
            Set(ReceiptRefusal.Reason.allCases)
        )
    }
}
