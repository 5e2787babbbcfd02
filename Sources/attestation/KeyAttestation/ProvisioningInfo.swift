package import Encodings
internal import Signatures

/// How the keys of a phone came to be certified.
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
