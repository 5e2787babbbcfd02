import Cryptography
import KeyAttestation
import Signatures
import StrictDER

/// The extension of a key that may enrol, as DER, with what tests change.
struct MadeDescription {
    var levels: (attestation: UInt8, keyMint: UInt8) = (1, 1)
    var challenge = Array("challenge".utf8)
    /// Elements of the two lists, each with its tag.
    var software: [[UInt8]] = [Self.tagged(709, DEREncoder.octetString(Self.app()))]
    var hardware: [UInt32: [UInt8]] = [
        1: DEREncoder.set([DEREncoder.integer(3), DEREncoder.integer(2)]),
        2: DEREncoder.integer(3),
        3: DEREncoder.integer(256),
        5: DEREncoder.set([DEREncoder.integer(4)]),
        10: DEREncoder.integer(1),
        702: DEREncoder.integer(0),
        704: Self.rootOfTrust(),
        706: DEREncoder.integer(202_601),
    ]
    /// More elements of the hardware's list, as they are.
    var more: [[UInt8]] = []
    /// More fields after the eight.
    var fields: [[UInt8]] = []

    static let package = "com.example.shop"
    static let signer = [UInt8](repeating: 7, count: 32)

    static func tagged(_ tag: UInt32, _ value: [UInt8]) -> [UInt8] {
        DEREncoder.element(.explicit(tag), value)
    }

    static func enumerated(_ value: UInt8) -> [UInt8] {
        DEREncoder.element(.enumerated, [value])
    }

    static func rootOfTrust(
        key: [UInt8] = [UInt8](repeating: 0, count: 32),
        isLocked: [UInt8] = [0xFF],
        state: UInt8 = 0,
        more: [[UInt8]] = []
    ) -> [UInt8] {
        DEREncoder.sequence(
            [
                DEREncoder.octetString(key), DEREncoder.element(.boolean, isLocked),
                enumerated(state),
            ] + more
        )
    }

    static func app(_ packages: [String] = [package], signers: [[UInt8]] = [signer]) -> [UInt8] {
        DEREncoder.sequence([
            DEREncoder.set(
                packages.map {
                    DEREncoder.sequence([
                        DEREncoder.octetString(Array($0.utf8)), DEREncoder.integer(1),
                    ])
                }
            ),
            DEREncoder.set(signers.map(DEREncoder.octetString)),
        ])
    }

    var der: [UInt8] {
        let hardware = hardware.sorted { $0.key < $1.key }.map { Self.tagged($0.key, $0.value) }
        return DEREncoder.sequence(
            [
                DEREncoder.integer(300), Self.enumerated(levels.attestation),
                DEREncoder.integer(300), Self.enumerated(levels.keyMint),
                DEREncoder.octetString(challenge), DEREncoder.octetString([]),
                DEREncoder.sequence(software), DEREncoder.sequence(hardware + more),
            ] + fields
        )
    }
}

/// A chain of remote provisioning under an authority of its own, with what tests change.
struct MadeChain {
    static let now = UnixTime(seconds: 1_800_000_000)

    private static let keys = (
        root: ECPrivateKey(generating: .p384), ca2: ECPrivateKey(generating: .p384),
        ca3: ECPrivateKey(generating: .p256), attester: ECPrivateKey(generating: .p256),
        leaf: ECPrivateKey(generating: .p256)
    )
    static let root = builder("Made Root").selfSigned(by: keys.root)

    var description = MadeDescription()
    /// Extensions of the leaf, beside the description, and of the attestation certificate.
    var leafExtensions: [CertificateBuilder.Extension] = []
    var attesterExtensions: [CertificateBuilder.Extension] = []
    /// O of the attestation certificate, and of the leaf.
    var organization = "TEE"
    var leafOrganization: String?
    /// The subject of the last certificate below the root.
    var last = (name: "Droid CA2", organization: "Google LLC")
    var policy = AndroidPolicy.standard
    var leafKey = Self.keys.leaf

    private static func builder(
        _ name: String,
        _ organization: String? = nil,
        _ extensions: [CertificateBuilder.Extension] = []
    ) -> CertificateBuilder {
        CertificateBuilder(
            commonName: name,
            organization: organization,
            serial: UInt64(name.utf8.count),
            notBefore: now.advanced(bySeconds: -86_400),
            notAfter: now.advanced(bySeconds: 86_400),
            isAuthority: false,
            extensions: extensions
        )
    }

    static func extended(_ oid: String, _ value: [UInt8]) -> CertificateBuilder.Extension {
        CertificateBuilder.Extension(oid: OID(oid), isCritical: false, value: value)
    }

    /// The certificates, the leaf first, without the root.
    var certificates: [X509Certificate] {
        let keys = Self.keys
        let ca2 = Self.builder(last.name, last.organization)
            .signed(for: keys.ca2, by: keys.root, issuer: Self.root)
        let ca3 = Self.builder("Droid CA3", "Google LLC")
            .signed(for: keys.ca3, by: keys.ca2, issuer: ca2)
        let attester = Self.builder("attester", organization, attesterExtensions)
            .signed(for: keys.attester, by: keys.ca3, issuer: ca3)
        let own = Self.extended("1.3.6.1.4.1.11129.2.1.17", description.der)
        let leaf = Self.builder("Android Keystore Key", leafOrganization, [own] + leafExtensions)
            .signed(for: leafKey, by: keys.attester, issuer: attester)
        return [leaf, attester, ca3, ca2]
    }

    func verified(
        _ certificates: [X509Certificate]? = nil
    ) throws(KeyAttestationRefusal) -> VerifiedKeyAttestation {
        let chain = (certificates ?? self.certificates).map(\.der)
        return try UnverifiedKeyAttestation(chain: chain).verified(
            challenge: Array("challenge".utf8),
            app: ExpectedAndroidApp(
                package: MadeDescription.package,
                signers: [MadeDescription.signer],
                policy: policy
            ),
            roots: [Self.root],
            statusList: .empty,
            at: Self.now
        )
    }

    /// Why the chain is refused with a change; `nil` when it is accepted.
    static func reason(
        _ change: (inout MadeChain) -> Void = { _ in }
    ) -> KeyAttestationRefusal.Reason? {
        var chain = MadeChain()
        change(&chain)
        do throws(KeyAttestationRefusal) {
            _ = try chain.verified()
            return nil
        } catch {
            return error.reason
        }
    }
}
