import AppAttest
import ConfigurationReading
import Cryptography
import Encodings
import SoftwareAuthenticator

extension FuzzTarget {
    /// One CBOR item: the tree and the cursor agree, and what is read is its only spelling.
    static func cbor(_ bytes: [UInt8]) {
        let budget = CBORBudget(bytesMax: 16 * 1024, depthMax: 8, itemsMax: 256)
        var isSkipped = false
        do throws(CBORError) {
            var cursor = try CBORCursor(0..<bytes.count, budget: budget)
            _ = try cursor.skip(in: bytes.span)
            try cursor.finish()
            isSkipped = true
        } catch {
            demand((0...bytes.count).contains(error.offset), "a fault lies in the bytes")
        }
        do throws(CBORError) {
            let value = try CBORValue(decoding: bytes, budget: budget)
            demand(isSkipped, "what makes a tree can be skipped")
            demand(value.encoded == bytes, "an item has one spelling")
        } catch {
            demand(!isSkipped, "what can be skipped makes a tree")
        }
    }

    /// An attestation; only that of the made-up device verifies.
    static func attestation(_ bytes: [UInt8]) {
        _ = ObjectDescription.attestation(bytes)
        let app = ExpectedApp(
            id: SeedObjects.appID,
            environments: [.production],
            isMacOS: false,
            builds: .any
        )
        let hash = SeedObjects.hash
        do throws(AttestationRefusal) {
            let verified = try UnverifiedAttestation(bytes: bytes).verified(
                clientDataHash: hash.span,
                keyID: SeedObjects.key.keyID,
                apps: [app],
                roots: [SeedObjects.authority.root],
                at: SeedObjects.madeAt
            )
            demand(verified.publicKey == SeedObjects.key.publicKey, "no other key verifies")
            demand(verified.counter == .zero, "a fresh key has the counter zero")
        } catch {
            demand(!error.detail.isEmpty, "a refusal says why")
        }
    }

    /// An assertion; only that of the made-up device verifies, with the one counter it had.
    static func assertion(_ bytes: [UInt8]) {
        _ = ObjectDescription.assertion(bytes)
        let hash = SeedObjects.hash
        do throws(AssertionRefusal) {
            let verified = try UnverifiedAssertion(bytes: bytes).verified(
                clientDataHash: hash.span,
                key: SeedObjects.key.publicKey,
                app: AppIDHash(appID: SeedObjects.appID)
            )
            demand(verified.counter.rawValue == 1, "no counter verifies that was not signed")
        } catch {
            demand(!error.detail.isEmpty, "a refusal says why")
        }
    }

    /// A receipt; only that of the made-up device verifies.
    static func receipt(_ bytes: [UInt8]) {
        _ = ObjectDescription.receipt(bytes)
        do throws(ReceiptRefusal) {
            let verified = try UnverifiedReceipt(bytes: bytes).verified(
                appIDs: [SeedObjects.appID],
                key: SeedObjects.key.publicKey,
                roots: [SeedObjects.authority.root],
                freshness: nil
            )
            demand(verified.fields.clientHash == SeedObjects.hash, "no other content verifies")
            demand(verified.fields.kind == .attest, "no other kind verifies")
        } catch {
            demand(!error.detail.isEmpty, "a refusal says why")
        }
    }

    /// A certificate, PEM, and DER elements one after the other.
    static func certificate(_ bytes: [UInt8]) {
        if let certificate = try? X509Certificate(der: bytes) {
            _ = certificate.p256PublicKey
            _ = certificate.subject[.commonName]
            _ = certificate.extensionBytes(OID("1.2.840.113635.100.8.2"))
            demand(
                (try? X509Certificate(der: certificate.der))?.fingerprint
                    == certificate.fingerprint,
                "a certificate reads again"
            )
            if let path = try? certificate.path(
                through: [SeedObjects.authority.intermediate],
                to: [SeedObjects.authority.root],
                at: SeedObjects.madeAt
            ) {
                demand(
                    path.last?.der == SeedObjects.authority.root.der,
                    "a path ends at the anchor"
                )
            }
        }
        let text = String(decoding: bytes, as: UTF8.self)
        if let all = try? X509Certificate.certificates(pem: text) {
            let pem = all.map(\.pem).joined()
            let again = try? X509Certificate.certificates(pem: pem)
            demand(again?.map(\.der) == all.map(\.der), "PEM reads again")
        }
        elements(bytes, 0..<bytes.count, depth: 0)
    }

    private static func elements(_ bytes: [UInt8], _ range: Range<Int>, depth: Int) {
        guard depth < 8 else { return }
        var cursor = DERCursor(range)
        while !cursor.isAtEnd {
            let start = cursor.offset
            guard let element = try? cursor.next(in: bytes.span) else { return }
            demand(cursor.offset > start, "an element has bytes")
            demand(
                range.lowerBound <= element.content.lowerBound
                    && element.content.upperBound <= range.upperBound,
                "an element lies in what holds it"
            )
            elements(bytes, element.content, depth: depth + 1)
        }
    }
}
