package import Encodings
package import Signatures

/// What the certificates of a chain say without being judged, for people: also of a chain that is
/// refused, and of one with certificates that can't be read.
package struct ChainSummary: Sendable {
    /// The serials, the leaf's first; `nil` for a certificate that can't be read.
    package let serials: [CertificateSerial?]
    /// What the last certificate below the root says; `nil` where that can't be read.
    package let provisioning: Provisioning?
    /// What Google says of the phone.
    package let provisioningInfo: ProvisioningInfo?
    /// Whether there is an extension that should say it and can't be read.
    package let hasMalformedProvisioningInfo: Bool
    /// SHA-256 of the SubjectPublicKeyInfo of the authority at the end: of the last certificate, or
    /// of the given root that the last one names as its issuer.
    package let rootKeyDigest: [UInt8]?
    /// The kind of the leaf's key: ec, rsa, or an object identifier.
    package let leafKeyAlgorithm: String?
    /// The curve of the leaf's key.
    package let leafCurve: String?
    /// The leaf's key, when it is one on P-256.
    package let leafKey: P256PublicKey?

    /// Reads what can be read.
    package init(chain: [[UInt8]], roots: [X509Certificate]) {
        let certificates = chain.prefix(UnverifiedKeyAttestation.certificates.upperBound)
            .map { PlainCertificate(der: ContiguousArray($0).span) }
        serials = certificates.map { $0.map { CertificateSerial(bytes: $0.serial) } }
        let kinds = (certificates.first ?? nil).map { Self.identifiers($0.subjectKey.algorithm) }
        leafKeyAlgorithm = kinds?.first.map { Self.words[$0] ?? $0 }
        leafCurve = kinds?.dropFirst().first.map { Self.words[$0] ?? $0 }
        leafKey = certificates.first??.p256PublicKey

        let infos = certificates.dropFirst()
            .compactMap { $0?.values(of: ProvisioningInfo.oid).first }
        provisioningInfo = infos.first.flatMap { ProvisioningInfo($0) }
        hasMalformedProvisioningInfo = provisioningInfo == nil && !infos.isEmpty

        guard let last = certificates.last.flatMap({ $0 }) else {
            (provisioning, rootKeyDigest) = (nil, nil)
            return
        }
        // A root names itself as its issuer.
        let issuer = CertificateName(last.issuer)
        let isRoot = CertificateName(last.subject) == issuer
        let first = isRoot ? certificates.dropLast().last.flatMap { $0 } : last
        provisioning = first.map { Provisioning(ofLast: CertificateName($0.subject)) }
        let root =
            isRoot
            ? last
            : roots.lazy.compactMap { PlainCertificate(der: ContiguousArray($0.der).span) }
                .first { CertificateName($0.subject) == issuer }
        rootKeyDigest = root.map { SHA256.digest(of: $0.subjectPublicKeyInfo).array }
    }

    private static let words = [
        "1.2.840.10045.2.1": "ec", "1.2.840.113549.1.1.1": "rsa",
        "1.2.840.10045.3.1.7": "p-256", "1.3.132.0.33": "p-224", "1.3.132.0.34": "p-384",
        "1.3.132.0.35": "p-521",
    ]

    /// The object identifiers of an AlgorithmIdentifier, as far as it can be read.
    private static func identifiers(_ algorithm: [UInt8]) -> [String] {
        let whole = ContiguousArray(algorithm)
        let der = whole.span
        var cursor = DERCursor(0..<der.count)
        var texts: [String] = []
        while let element = try? cursor.next(in: der), element.tag == .objectIdentifier,
            let text = text(der.copy(element.content))
        {
            texts.append(text)
        }
        return texts
    }

    /// X.690 §8.19: base 128, high digit first; the first number holds two arcs. `nil` for a number
    /// of more than 32 bits.
    private static func text(_ identifier: [UInt8]) -> String? {
        var arcs: [UInt32] = []
        var arc: UInt32 = 0
        for byte in identifier {
            guard arc < 1 << 25 else { return nil }
            arc = arc << 7 | UInt32(byte & 0x7F)
            guard byte < 0x80 else { continue }
            arcs.append(arc)
            arc = 0
        }
        guard let first = arcs.first else { return nil }
        let root = min(first / 40, 2)
        return ([root, first - root * 40] + arcs.dropFirst()).map { String($0) }
            .joined(separator: ".")
    }
}

/// How the keys of a phone came to be certified.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum Provisioning: String, CaseIterable, Sendable {
    /// In the factory: one key for a batch of phones, with a certificate for ten years.
    case factory
    /// Remotely (RKP): a key of the phone's own, with certificates for days or weeks.
    case rkp
    /// In no way that is known.
    case unknown

    private static let serialNumber = OID("2.5.4.5")
    private static let commonName = OID("2.5.4.3")
    private static let organization = OID("2.5.4.10")

    /// What the subject of the last certificate below the root says: step 4 [Google,
    /// KeyAttestationCertPath.kt].
    init(ofLast subject: CertificateName) {
        if subject.has(Self.serialNumber) {
            self = .factory
        } else if subject.has(Self.commonName, "Droid CA2"),
            subject.has(Self.organization, "Google LLC")
        {
            self = .rkp
        } else {
            self = .unknown
        }
    }

    /// How many certificates such a chain has below the root; `nil` where that is not known.
    var certificateCount: Int? {
        switch self {
        // Leaf, attestation, intermediate.
        case .factory: 3
        // Leaf, attestation, Droid CA3, Droid CA2.
        case .rkp: 4
        case .unknown: nil
        }
    }
}

/// What Google's servers say of the phone in the certificate that they gave it: the extension of an
/// attestation certificate of RKP since May 2023.
///
///     {1: certificates of the last 30 days, 3: maker, …}        CBOR
public struct ProvisioningInfo: Hashable, Sendable {
    /// The longest extension that is read.
    public static let bytesMax = 1024

    /// How many certificates the phone was given in the last 30 days, about; powers of two from 8
    /// to 128 have been seen. A farm of keys that renews often shows here.
    public let certificatesIssued: UInt64?
    /// All that is there.
    package let pairs: [CBORValue.Pair]

    static let oid = OID("1.3.6.1.4.1.11129.2.1.30")

    /// Reads an extension; `nil` for one that is ill-formed, as phones of one maker have it.
    init?(_ bytes: [UInt8]) {
        let budget = CBORBudget(bytesMax: Self.bytesMax, depthMax: 4, itemsMax: 64)
        guard case .map(let pairs) = try? CBORValue(decoding: bytes, budget: budget) else {
            return nil
        }
        self.pairs = pairs
        guard case .unsigned(let count) = pairs.first(where: { $0.key == .unsigned(1) })?.value
        else {
            certificatesIssued = nil
            return
        }
        certificatesIssued = count
    }
}
