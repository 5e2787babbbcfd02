internal import Crypto
internal import Encodings
internal import Foundation

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
