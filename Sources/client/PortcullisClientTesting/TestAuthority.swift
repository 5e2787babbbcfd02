internal import Encodings
public import Foundation

/// A certificate authority in Apple's place, for devices made of software.
///
/// A gateway trusts it only where an app entry says `environments: [test]` and names the file of
/// ``rootPEM`` in `test_root`.
///
///     root ── issuer ── leaf of a key
///      └───── signer of the key's receipt
///
/// The private key is as secret as what the test gateway protects: it makes keys at will.
public struct TestAuthority: Sendable {
    /// Why a text is not an authority.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// The text has no block of this name.
        case blockMissing(String)
        /// The certificate can't be read.
        case certificateMalformed
        /// The private key is not one on P-256 or P-384.
        case keyUnreadable
        /// The certificate is of another key.
        case otherKey

        /// What is wrong, and what to do.
        public var description: String {
            switch self {
            case .blockMissing(let name):
                "the text has no “-----BEGIN \(name)-----”; join certificate and key in one text"
            case .certificateMalformed: "the certificate can't be read; is it one in PEM?"
            case .keyUnreadable: "the key is not an unencrypted one on P-256 or P-384"
            case .otherKey: "certificate and key don't belong together"
            }
        }
    }

    /// The root's certificate in PEM: the content of the file that `test_root` names.
    public let rootPEM: String
    /// The root's name, in DER.
    let subject: [UInt8]
    let key: TestSigningKey

    /// The organization in the names of all certificates that are made here.
    static let organization = "Portcullis test authority"

    /// An authority with a random key, whose root is valid for ten years.
    ///
    /// - Parameter madeAt: the moment of making; the root is valid from a day before it.
    /// - Throws: when swift-crypto can't sign.
    public init(madeAt: Date = Date()) throws {
        let key = TestSigningKey.random()
        let tag = UInt32.random(in: .min ... .max)
        let subject = CertificateContent.name(
            "Software root \(String(tag, radix: 16))",
            organization: Self.organization
        )
        let root = CertificateContent(
            subject: subject,
            publicKeyInfo: key.publicKeyInfo,
            isAuthority: true,
            from: madeAt,
            days: 3_650
        )
        rootPEM = Self.text("CERTIFICATE", try root.signed(by: key))
        (self.subject, self.key) = (subject, key)
    }

    /// The authority of a certificate and its private key, both in PEM in one text, in any order:
    /// what ``pem`` has, or `openssl req -x509` makes.
    public init(pem: String) throws(Failure) {
        let certificate = try Self.block("CERTIFICATE", in: pem)
        let names = ["PRIVATE KEY", "EC PRIVATE KEY"]
        let name = names.first { pem.contains("-----BEGIN \($0)-----") } ?? names[0]
        guard let key = TestSigningKey(pem: try Self.block(name, in: pem)) else {
            throw .keyUnreadable
        }
        let lines = certificate.split(whereSeparator: \.isNewline).dropFirst().dropLast()
        guard let der = Data(base64Encoded: lines.joined()) else { throw .certificateMalformed }
        let root: TestRoot
        do throws(DERError) {
            root = try TestRoot(der: Array(der))
        } catch {
            throw .certificateMalformed
        }
        guard root.publicKeyInfo == key.publicKeyInfo else { throw .otherKey }
        rootPEM = certificate
        (subject, self.key) = (root.subject, key)
    }

    /// Certificate and private key in PEM, to be kept for ``init(pem:)``.
    public var pem: String { "\(rootPEM)\(key.pem)\n" }

    /// Certificates for a key: its leaf, then an issuer that is made for it.
    ///
    /// - Parameters:
    ///   - commonName: the leaf's name.
    ///   - publicKeyInfo: the key.
    ///   - extensions: what the leaf has besides.
    ///   - now: the leaf is valid from a day before to two days after, as genuine ones are.
    /// - Returns: both in DER, in the order of `x5c`.
    /// - Throws: when swift-crypto can't sign.
    func certificates(
        _ commonName: String,
        publicKeyInfo: [UInt8],
        extensions: [CertificateContent.Extension],
        now: Date
    ) throws -> [[UInt8]] {
        let issuerKey = TestSigningKey.random()
        var issuer = CertificateContent(
            subject: CertificateContent.name("Software issuer", organization: Self.organization),
            publicKeyInfo: issuerKey.publicKeyInfo,
            isAuthority: true,
            from: now,
            days: 2
        )
        issuer.issuer = subject
        var leaf = CertificateContent(
            subject: CertificateContent.name(commonName, organization: Self.organization),
            publicKeyInfo: publicKeyInfo,
            isAuthority: false,
            from: now,
            days: 2
        )
        leaf.issuer = issuer.subject
        leaf.extensions += extensions
        return [try leaf.signed(by: issuerKey), try issuer.signed(by: key)]
    }

    /// A block with its two marker lines.
    private static func block(_ name: String, in pem: String) throws(Failure) -> String {
        let (begin, end) = ("-----BEGIN \(name)-----", "-----END \(name)-----")
        guard let start = pem.range(of: begin),
            let stop = pem.range(of: end, range: start.upperBound..<pem.endIndex)
        else { throw .blockMissing(name) }
        return pem[start.lowerBound..<stop.upperBound] + "\n"
    }

    /// DER in PEM, in lines of 64 characters (RFC 7468 §2).
    private static func text(_ name: String, _ der: [UInt8]) -> String {
        let lines = Data(der).base64EncodedString(options: [
            .lineLength64Characters, .endLineWithLineFeed,
        ])
        return "-----BEGIN \(name)-----\n\(lines)\n-----END \(name)-----\n"
    }
}

extension TestAuthority {
    /// 1.2.840.113635.100.12.15 marks the certificates that sign Apple's receipts.
    private static let signerMark: CertificateContent.Extension = (
        DEREncoder.objectIdentifier([1, 2, 840, 113_635, 100, 12, 15]), false, [0x05, 0x00]
    )

    /// A receipt around this content, as Apple makes them.
    ///
    /// - Parameters:
    ///   - content: the fields in DER.
    ///   - now: the signer is valid from a day before to two days after.
    /// - Returns: the message in BER.
    /// - Throws: when swift-crypto can't sign.
    func receipt(_ content: [UInt8], now: Date) throws -> [UInt8] {
        let signerKey = TestSigningKey.random()
        var signer = CertificateContent(
            subject: CertificateContent.name(
                "Software receipt signing",
                organization: Self.organization
            ),
            publicKeyInfo: signerKey.publicKeyInfo,
            isAuthority: false,
            from: now,
            days: 2
        )
        signer.issuer = subject
        signer.extensions.append(Self.signerMark)
        return MessageContent(
            content,
            certificates: [try signer.signed(by: key)],
            signer: (subject, DEREncoder.integer(signer.serial)),
            signature: try signerKey.signature(of: content)
        ).ber
    }
}
