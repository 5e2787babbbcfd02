internal import Crypto
internal import Encodings
internal import Foundation

/// What is to stand in a certificate (RFC 5280 §4.1).
struct TestCertificate {
    /// An extension with its value in DER.
    typealias Extension = (identifier: [UInt32], isCritical: Bool, value: [UInt8])

    /// The subject, a Name in DER.
    var subject: [UInt8]
    /// The issuer, a Name in DER.
    var issuer: [UInt8]
    /// The SubjectPublicKeyInfo in DER.
    var publicKeyInfo: [UInt8]
    /// The first moment of validity.
    var notBefore: Date
    /// The last second of validity.
    var notAfter: Date
    /// Whether the subject may issue certificates.
    var isAuthority: Bool
    /// The serial number, by which a message names its signer (RFC 5652 §5.3).
    var serial = UInt32.random(in: 1...UInt32.max)
    /// Extensions beside basicConstraints and keyUsage.
    var extensions: [Extension] = []

    static func name(_ commonName: String, organization: String) -> [UInt8] {
        let entries: [([UInt32], String)] = [
            ([2, 5, 4, 10], organization), ([2, 5, 4, 3], commonName),
        ]
        return DEREncoder.sequence(
            entries.map { type, text in
                let value = DEREncoder.element(.utf8String, Array(text.utf8))
                return DEREncoder.set([
                    DEREncoder.sequence([DEREncoder.objectIdentifier(type), value])
                ])
            }
        )
    }

    /// The certificate in DER, signed by a key.
    func signed(by key: TestSigningKey) throws -> [UInt8] {
        let version = DEREncoder.element(.explicit(0), DEREncoder.integer(2))
        let content = DEREncoder.sequence([
            version, DEREncoder.integer(serial), key.algorithm, issuer,
            DEREncoder.sequence([Self.time(notBefore), Self.time(notAfter)]), subject,
            publicKeyInfo,
            DEREncoder.element(
                .explicit(3),
                DEREncoder.sequence((usage + extensions).map(Self.encoded))
            ),
        ])
        let signature = try key.signature(of: content)
        return DEREncoder.sequence([content, key.algorithm, DEREncoder.bitString(signature)])
    }

    /// basicConstraints and keyUsage (RFC 5280 §4.2.1.9 and §4.2.1.3): keyCertSign and cRLSign, or
    /// digitalSignature.
    private var usage: [Extension] {
        let isAuthority = self.isAuthority ? [DEREncoder.element(.boolean, [0xFF])] : []
        let keyUsage: [UInt8] = self.isAuthority ? [1, 0x06] : [7, 0x80]
        return [
            ([2, 5, 29, 19], true, DEREncoder.sequence(isAuthority)),
            ([2, 5, 29, 15], true, DEREncoder.element(.bitString, keyUsage)),
        ]
    }

    private static func encoded(_ entry: Extension) -> [UInt8] {
        let flag = entry.isCritical ? [DEREncoder.element(.boolean, [0xFF])] : []
        return DEREncoder.sequence(
            [DEREncoder.objectIdentifier(entry.identifier)] + flag
                + [DEREncoder.octetString(entry.value)]
        )
    }

    /// UTCTime until 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5).
    private static func time(_ date: Date) -> [UInt8] {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents(
            [.year, .month, .day, .hour, .minute, .second],
            from: date
        )
        let year = parts.year ?? 0
        let rest = [parts.month, parts.day, parts.hour, parts.minute, parts.second]
            .map { padded($0 ?? 0, 2) }
            .joined()
        return year < 2050
            ? DEREncoder.element(.utcTime, Array("\(padded(year % 100, 2))\(rest)Z".utf8))
            : DEREncoder.element(.generalizedTime, Array("\(padded(year, 4))\(rest)Z".utf8))
    }

    private static func padded(_ number: Int, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
}

extension TestCertificate {
    /// What has to be known of a root to issue certificates under it.
    struct Root {
        /// The subject, a Name in DER.
        var subject: [UInt8]
        /// The SubjectPublicKeyInfo in DER.
        var publicKeyInfo: [UInt8]

        /// Reads a certificate in DER. The signature is not checked: the gateway does that.
        init(der: [UInt8]) throws(DERError) {
            let copy = ContiguousArray(der)
            let bytes = copy.span
            var outer = DERCursor(0..<bytes.count)
            var certificate = DERCursor(try outer.next(.sequence, in: bytes))
            try outer.finish()
            var fields = DERCursor(try certificate.next(.sequence, in: bytes))
            _ = try fields.next(.explicit(0), in: bytes)
            _ = try fields.next(.integer, in: bytes)
            // Signature algorithm, issuer, validity.
            for _ in 0..<3 { _ = try fields.next(.sequence, in: bytes) }
            subject = DEREncoder.element(
                .sequence,
                Array(der[try fields.next(.sequence, in: bytes)])
            )
            publicKeyInfo = DEREncoder.element(
                .sequence,
                Array(der[try fields.next(.sequence, in: bytes)])
            )
        }
    }
}

/// A key that signs certificates.
enum TestSigningKey: Sendable {
    case p256(P256.Signing.PrivateKey)
    case p384(P384.Signing.PrivateKey)

    /// A random key on P-256.
    static func random() -> TestSigningKey { .p256(P256.Signing.PrivateKey()) }

    /// Reads PEM, with "PRIVATE KEY" or "EC PRIVATE KEY"; `nil` for another key than one on P-256
    /// or P-384.
    init?(pem: String) {
        if let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) {
            self = .p256(key)
        } else if let key = try? P384.Signing.PrivateKey(pemRepresentation: pem) {
            self = .p384(key)
        } else {
            return nil
        }
    }

    /// The key in PEM.
    var pem: String {
        switch self {
        case .p256(let key): key.pemRepresentation
        case .p384(let key): key.pemRepresentation
        }
    }

    /// The SubjectPublicKeyInfo of the public half, in DER.
    var publicKeyInfo: [UInt8] {
        switch self {
        case .p256(let key): Array(key.publicKey.derRepresentation)
        case .p384(let key): Array(key.publicKey.derRepresentation)
        }
    }

    /// The AlgorithmIdentifier of its signatures: ecdsa-with-SHA256 or ecdsa-with-SHA384 (RFC 5758
    /// §3.2).
    var algorithm: [UInt8] {
        switch self {
        case .p256: DEREncoder.sequence([DEREncoder.objectIdentifier([1, 2, 840, 10045, 4, 3, 2])])
        case .p384: DEREncoder.sequence([DEREncoder.objectIdentifier([1, 2, 840, 10045, 4, 3, 3])])
        }
    }

    /// A signature in DER.
    func signature(of bytes: [UInt8]) throws -> [UInt8] {
        switch self {
        case .p256(let key): Array(try key.signature(for: bytes).derRepresentation)
        case .p384(let key): Array(try key.signature(for: bytes).derRepresentation)
        }
    }
}
