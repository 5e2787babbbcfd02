package import Cryptography
internal import Encodings
internal import KeyAttestation
package import Signatures

/// The chain of an attested key, with all that a test may change.
///
///     factory   root (P-384) ── intermediate ── phones' batch ── leaf
///     RKP       root ── Droid CA2 (P-384) ── Droid CA3 ── phone ── leaf
///     unknown   root ── Another CA ── phone ── leaf
///
/// All keys are on P-256 but for those with another curve. Genuine roots of a factory are RSA.
package struct PhoneChain: Sendable {
    /// What the leaf says of the key.
    package var description: PhoneDescription
    /// Extensions of the leaf besides the description.
    package var leafExtensions: [CertificateBuilder.Extension] = []
    /// Extensions of the certificate whose key attests.
    package var attesterExtensions: [CertificateBuilder.Extension] = []
    /// The level that the attesting certificate names in its subject, and the leaf.
    package var levelName: String
    package var leafLevelName: String?
    /// The attested key, X9.62, and its curve.
    package var leafKey: (point: [UInt8], curve: ECPrivateKey.Curve)

    private let authority: SoftwareAuthority
    private let phone: SoftwarePhone
    private let time: UnixTime

    private static let descriptionOID = OID("1.3.6.1.4.1.11129.2.1.17")
    private static let provisioningInfoOID = OID("1.3.6.1.4.1.11129.2.1.30")
    private static let day: Int64 = 86_400

    /// The chain of a key that an Android phone makes for its app.
    package init(
        of key: P256PublicKey,
        on device: SoftwareDevice,
        challenge: [UInt8],
        at time: UnixTime
    ) {
        guard let phone = device.phone else {
            preconditionFailure("PhoneChain: Apple's devices make no chain")
        }
        // Of YYYY-MM-DD.
        let month = UInt32(time.iso8601.prefix(7).filter { $0 != "-" }) ?? 0
        description = PhoneDescription(phone, package: device.appID, challenge, month: month)
        levelName = phone.level == .strongBox ? "StrongBox" : "TEE"
        leafKey = (key.x963, .p256)
        if phone.provisioning == .rkp, let count = phone.certificatesIssued {
            let info = CBORValue.map([.init(.unsigned(1), .unsigned(count))]).encoded
            attesterExtensions = [.init(oid: Self.provisioningInfoOID, value: info)]
        }
        authority = device.authority
        self.phone = phone
        self.time = time
    }

    /// The leaf first, without the root.
    package var certificates: [X509Certificate] {
        guard let issuers = authority.phoneIssuers[phone.provisioning] else {
            preconditionFailure("PhoneChain: a kind of chain without issuers")
        }
        let attesterKey = authority.attesterKey(phone.name)
        let serial = String(phone.attesterSerial, radix: 16)
        let isFactory = phone.provisioning == .factory
        let ofRKP =
            time.advanced(bySeconds: -Self.day)...time.advanced(bySeconds: 14 * Self.day)
        var builder = CertificateBuilder(
            subject: .init(
                commonName: isFactory ? nil : serial,
                organization: isFactory ? nil : levelName
            ),
            serial: phone.attesterSerial,
            validity: isFactory ? authority.notBefore...authority.notAfter : ofRKP,
            isAuthority: true,
            extensions: attesterExtensions
        )
        if isFactory {
            builder.subject.attributes = [(.serialNumber, serial), (.title, levelName)]
        }
        let attester = builder.signed(
            for: attesterKey,
            by: issuers.key,
            issuer: issuers.certificates[0]
        )
        // The phone writes the leaf, and its clock may be anything: 1970 to 2106 are seen.
        let leaf = CertificateBuilder(
            subject: .init(commonName: "Android Keystore Key", organization: leafLevelName),
            serial: 1,
            validity: UnixTime(seconds: 0)...UnixTime(seconds: Int64(UInt32.max)),
            isAuthority: false,
            extensions: [
                CertificateBuilder.Extension(oid: Self.descriptionOID, value: description.der)
            ] + leafExtensions
        ).signed(for: leafKey.point, on: leafKey.curve, by: attesterKey, issuer: attester)
        return [leaf, attester] + issuers.certificates
    }
}

/// The certificates between the root and those of phones, and the key that signs the latter.
struct PhoneIssuers: Sendable {
    /// The nearest to the phones first, without the root.
    let certificates: [X509Certificate]
    let key: ECPrivateKey

    /// The issuers of each kind of chain. Their serial numbers are 6 to 9.
    static func all(
        under root: (certificate: X509Certificate, key: ECPrivateKey),
        from notBefore: UnixTime,
        to notAfter: UnixTime,
        key: (ECPrivateKey.Curve, String) -> ECPrivateKey
    ) -> [Provisioning: PhoneIssuers] {
        func issued(
            _ name: String?,
            attributes: [(type: OID, value: String)] = [],
            serial: UInt64,
            by issuer: (certificate: X509Certificate, key: ECPrivateKey),
            on curve: ECPrivateKey.Curve = .p256
        ) -> (certificate: X509Certificate, key: ECPrivateKey) {
            let own = key(curve, "phones' issuer \(serial)")
            var builder = CertificateBuilder(
                subject: .init(commonName: name, organization: name == nil ? nil : "Google LLC"),
                serial: serial,
                validity: notBefore...notAfter,
                isAuthority: true
            )
            builder.subject.attributes = attributes
            return (builder.signed(for: own, by: issuer.key, issuer: issuer.certificate), own)
        }
        let second = issued("Droid CA2", serial: 6, by: root, on: .p384)
        let third = issued("Droid CA3", serial: 7, by: second)
        let factory = issued(
            nil,
            attributes: [(.serialNumber, "c0ffee"), (.title, "TEE")],
            serial: 8,
            by: root
        )
        let other = issued("Another CA", serial: 9, by: root)
        return [
            .rkp: PhoneIssuers(
                certificates: [third.certificate, second.certificate],
                key: third.key
            ),
            .factory: PhoneIssuers(certificates: [factory.certificate], key: factory.key),
            .unknown: PhoneIssuers(certificates: [other.certificate], key: other.key),
        ]
    }
}

/// What a keystore says of a key and of the phone: the extension of the leaf, with all that a test
/// may change.
package struct PhoneDescription: Sendable {
    package var levels: (attestation: UInt8, keyMint: UInt8)
    package var challenge: [UInt8]
    /// Elements of the system's list, each with its tag.
    package var software: [[UInt8]]
    /// Values of the hardware's list.
    package var hardware: [UInt32: [UInt8]]
    /// More elements of the hardware's list, as they are.
    package var more: [[UInt8]] = []
    /// More fields after the eight.
    package var fields: [[UInt8]] = []

    init(_ phone: SoftwarePhone, package name: String, _ challenge: [UInt8], month: UInt32) {
        let level = UInt8(phone.level.rawValue)
        levels = (level, level)
        self.challenge = challenge
        let app = Self.app([name], signers: phone.signers)
        software = [Self.tagged(709, DEREncoder.octetString(app))]
        hardware = [
            1: DEREncoder.set([DEREncoder.integer(3), DEREncoder.integer(2)]),
            2: DEREncoder.integer(3),
            3: DEREncoder.integer(256),
            5: DEREncoder.set([DEREncoder.integer(4)]),
            10: DEREncoder.integer(1),
            702: DEREncoder.integer(UInt32(phone.origin.rawValue)),
            704: Self.rootOfTrust(
                key: phone.bootKey,
                isLocked: [phone.isLocked ? 0xFF : 0],
                state: UInt8(phone.bootState.rawValue)
            ),
            705: DEREncoder.integer(160_000),
            706: DEREncoder.integer(phone.osPatchLevel ?? month),
        ]
    }

    package static func tagged(_ tag: UInt32, _ value: [UInt8]) -> [UInt8] {
        DEREncoder.element(.explicit(tag), value)
    }

    private static func enumerated(_ value: UInt8) -> [UInt8] {
        DEREncoder.element(.enumerated, [value])
    }

    /// The value of tag 704.
    package static func rootOfTrust(
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

    /// What is inside the OCTET STRING of tag 709.
    package static func app(
        _ packages: [String],
        signers: [[UInt8]] = [SoftwarePhone.signer]
    ) -> [UInt8] {
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

    /// The value of the extension.
    package var der: [UInt8] {
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
