import Cryptography
import Encodings

@testable import AppAttest

/// An authority of our own with a device under it, for what no genuine object shows: wrong in one
/// place, signed in all.
struct TestAuthority {
    static let now = UnixTime(seconds: 1_800_000_000)
    static let appID = "ABCDE12345.com.example.shop"

    let rootKey = ECPrivateKey(generating: .p384)
    let intermediateKey = ECPrivateKey(generating: .p384)
    let device = P256PrivateKey()
    let root: X509Certificate
    let intermediate: X509Certificate

    init(
        intermediateNotAfter: UnixTime = now.advanced(bySeconds: 86_400),
        intermediateIsAuthority: Bool = true
    ) {
        root = CertificateBuilder(
            subject: .init(commonName: "Test Root"),
            serial: 1,
            validity: Self.now.advanced(bySeconds: -86_400)...Self.now.advanced(bySeconds: 86_400),
            isAuthority: true
        ).selfSigned(by: rootKey)
        intermediate = CertificateBuilder(
            subject: .init(commonName: "Test CA 1"),
            serial: 2,
            validity: Self.now.advanced(bySeconds: -86_400)...intermediateNotAfter,
            isAuthority: intermediateIsAuthority
        ).signed(for: intermediateKey, by: rootKey, issuer: root)
    }

    /// What an attestation says, all of it right until changed.
    struct Plan {
        var clientDataHash = SHA256.digest(of: [1, 2, 3]).array
        var appID = TestAuthority.appID
        var flags: UInt8 = 0x40
        var counter: [UInt8] = [0, 0, 0, 0]
        var aaguid = AttestationEnvironment.production.aaguid
        var credentialLength: [UInt8] = [0, 32]
        var credentialID: [UInt8]?
        var coseKey: [UInt8]?
        var trailing: [UInt8] = []
        var platform: String?
        var accessControl: [UInt8]?
        var nonceTag: UInt32 = 1
        var nonce: [UInt8]?
        var leafNotAfter = TestAuthority.now.advanced(bySeconds: 3_600)
        var criticalExtension: OID?
    }

    func attestation(_ plan: Plan) -> [UInt8] {
        let id = KeyID(of: device.publicKey)
        let authData =
            AppIDHash(appID: plan.appID).bytes + [plan.flags] + plan.counter + plan.aaguid
            + plan.credentialLength + (plan.credentialID ?? id.bytes)
            + (plan.coseKey ?? AttestedAuthenticatorData.coseKey(of: device.publicKey))
            + plan.trailing
        let nonce = plan.nonce ?? SHA256.digest(of: authData + plan.clientDataHash).array
        return AttestationParts(
            x5c: [leaf(plan, nonce: nonce).der, intermediate.der],
            receipt: [0x30, 0x00],
            authData: authData
        ).encoded
    }

    private func leaf(_ plan: Plan, nonce: [UInt8]) -> X509Certificate {
        var extensions = [
            CertificateBuilder.Extension(
                oid: LeafDetails.nonceOID,
                isCritical: false,
                value: wrapped(nonce, plan.nonceTag)
            )
        ]
        if let platform = plan.platform {
            let value = wrapped(Array(platform.utf8), 1026)
            extensions.append(
                .init(oid: LeafDetails.systemOID, isCritical: false, value: value)
            )
        }
        if let accessControl = plan.accessControl {
            let value = wrapped(accessControl, 3)
            extensions.append(
                .init(oid: LeafDetails.accessControlOID, isCritical: false, value: value)
            )
        }
        if let oid = plan.criticalExtension {
            extensions.append(.init(oid: oid, isCritical: true, value: [0x05, 0x00]))
        }
        return CertificateBuilder(
            subject: .init(commonName: "leaf", organizationalUnit: "AAA Certification"),
            serial: 3,
            validity: Self.now.advanced(bySeconds: -3_600)...plan.leafNotAfter,
            isAuthority: false,
            extensions: extensions
        ).signed(for: device.publicKey, by: intermediateKey, issuer: intermediate)
    }

    private func wrapped(_ bytes: [UInt8], _ tag: UInt32) -> [UInt8] {
        DEREncoder.sequence([
            DEREncoder.element(.explicit(tag), DEREncoder.octetString(bytes))
        ])
    }

    /// A receipt of these fields, with the signer right under the root.
    func receipt(
        _ fields: [(type: UInt32, value: [UInt8])],
        signerNotAfter: UnixTime = now.advanced(bySeconds: 3_600),
        signerIsMarked: Bool = true
    ) -> [UInt8] {
        let key = ECPrivateKey(generating: .p256)
        let signer = CertificateBuilder(
            subject: .init(commonName: "Test Receipt Signing"),
            serial: 4,
            validity: Self.now.advanced(bySeconds: -3_600)...signerNotAfter,
            isAuthority: false,
            extensions: signerIsMarked
                ? [.init(oid: UnverifiedReceipt.signerOID, isCritical: false, value: [0x05, 0x00])]
                : []
        ).signed(for: key, by: intermediateKey, issuer: intermediate)
        let payload = DEREncoder.set(
            fields.map { field in
                DEREncoder.sequence([
                    DEREncoder.integer(field.type), DEREncoder.integer(1),
                    DEREncoder.octetString(field.value),
                ])
            }
        )
        return SignedMessage.signed(payload, by: key, signer: signer, others: [intermediate])
    }

    /// The fields of a receipt in which all is right.
    func receiptFields(createdAt time: UnixTime = now) -> [(type: UInt32, value: [UInt8])] {
        let certificate = CertificateBuilder(
            subject: .init(commonName: "leaf"),
            serial: 3,
            validity: Self.now...Self.now,
            isAuthority: false
        ).signed(for: device.publicKey, by: intermediateKey, issuer: intermediate)
        return [
            (17, Array("7".utf8)), (6, Array("RECEIPT".utf8)), (2, Array(Self.appID.utf8)),
            (3, certificate.der), (4, [1]), (5, [2]), (7, Array("production".utf8)),
            (12, Array(time.iso8601.utf8)), (21, Array("2027-04-15T08:00:00.5Z".utf8)),
        ]
    }
}
