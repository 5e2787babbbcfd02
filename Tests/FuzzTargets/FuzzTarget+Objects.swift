import AppAttest
import Cryptography
import Inspection
import SoftwareAuthenticator
import StrictCBOR
import StrictDER

extension FuzzTarget {
    /// One CBOR item: the tree and the cursor agree, and what is read is its only spelling.
    static func cbor(_ octets: [UInt8]) {
        let budget = CBORBudget(octetsMax: 16 * 1024, depthMax: 8, itemsMax: 256)
        var isSkipped = false
        do throws(CBORError) {
            var cursor = try CBORCursor(0..<octets.count, budget: budget)
            _ = try cursor.skip(in: octets.span)
            try cursor.finish()
            isSkipped = true
        } catch {
            demand((0...octets.count).contains(error.offset), "a fault lies in the bytes")
        }
        do throws(CBORError) {
            let value = try CBORValue(decoding: octets, budget: budget)
            demand(isSkipped, "what makes a tree can be skipped")
            demand(value.encoded == octets, "an item has one spelling")
        } catch {
            demand(!isSkipped, "what can be skipped makes a tree")
        }
    }

    /// An attestation; only that of the made-up device verifies.
    static func attestation(_ octets: [UInt8]) {
        _ = ObjectDescription.attestation(octets)
        let app = ExpectedApp(
            id: SeedObjects.appID,
            environments: [.production],
            isMacOS: false,
            builds: .any
        )
        let hash = SeedObjects.hash
        do throws(AttestationRefusal) {
            let verified = try UnverifiedAttestation(bytes: octets).verified(
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
    static func assertion(_ octets: [UInt8]) {
        _ = ObjectDescription.assertion(octets)
        let hash = SeedObjects.hash
        do throws(AssertionRefusal) {
            let verified = try UnverifiedAssertion(bytes: octets).verified(
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
    static func receipt(_ octets: [UInt8]) {
        _ = ObjectDescription.receipt(octets)
        do throws(ReceiptRefusal) {
            let verified = try UnverifiedReceipt(bytes: octets).verified(
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
    static func certificate(_ octets: [UInt8]) {
        if let certificate = try? X509Certificate(der: octets) {
            _ = certificate.p256PublicKey
            _ = certificate.subject(.commonName)
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
        let text = String(decoding: octets, as: UTF8.self)
        if let all = try? X509Certificate.certificates(pem: text) {
            let pem = all.map(\.pem).joined()
            let again = try? X509Certificate.certificates(pem: pem)
            demand(again?.map(\.der) == all.map(\.der), "PEM reads again")
        }
        elements(octets, 0..<octets.count, depth: 0)
    }

    private static func elements(_ octets: [UInt8], _ range: Range<Int>, depth: Int) {
        guard depth < 8 else { return }
        var cursor = DERCursor(range)
        while !cursor.isAtEnd {
            let start = cursor.offset
            guard let element = try? cursor.next(in: octets.span) else { return }
            demand(cursor.offset > start, "an element has bytes")
            demand(
                range.lowerBound <= element.content.lowerBound
                    && element.content.upperBound <= range.upperBound,
                "an element lies in what holds it"
            )
            elements(octets, element.content, depth: depth + 1)
        }
    }
}
