internal import Encodings

// Checks without a secret: SHA-256, ECDSA on P-256, X.509 paths and CMS messages.
//
// AppAttest needs no more than this, so a server on any system links only this. swift-crypto
// verifies signatures everywhere; it is BoringSSL on Linux and CryptoKit on Apple's systems.
// Certificates and messages are read by `DERCursor`, in one reader for Apple's attestations and
// receipts and Android's chains. The gateway uses OpenSSL for SHA-256, as the package's trait
// `Gateway` decides. Tests hold the reader to OpenSSL's verdicts.
//
// Nothing here reads a clock or trusts the system's certificate store: time and anchors are
// parameters. Apple's systems of 2022 run it: `InlineArray` and `Array.span`, which they have since
// 26, are not used (TidyTests).
//
// swift-crypto verifies assertions because it is the faster one, and the gateway verifies an
// assertion for each request. Measured (release build, one core, µs of CPU; parse a key of 65
// bytes, read a DER signature, verify):
//
//     OpenSSL 3.0    EVP_PKEY_fromdata + EVP_PKEY_verify         104
//                    EC_KEY_oct2key + ECDSA_do_verify            77.7
//                    `openssl speed`, everything prepared        76.7
//     swift-crypto   PublicKey, ECDSASignature, isValidSignature 65.5
//
// Of the last, 1.4 are for the key and the check that it lies on the curve: parsed keys need no
// cache, and a public key is 64 bytes.

/// An object identifier of ASN.1, such as `1.2.840.113635.100.8.2`.
public struct OID: Hashable, Sendable, CustomStringConvertible {
    /// The arcs in decimal with full stops between them.
    public let description: String
    /// The arcs as DER has them, without tag and length.
    package let content: [UInt8]

    /// The object identifier of these arcs. Text that is none ends the process: identifiers are
    /// constants.
    public init(_ description: String) {
        let arcs = description.split(separator: ".", omittingEmptySubsequences: false)
            .map { UInt32($0) }
        guard arcs.count >= 2, !arcs.contains(nil) else {
            preconditionFailure("OID: \(description) is no object identifier")
        }
        self.description = description
        let element = DEREncoder.objectIdentifier(arcs.compactMap { $0 })
        // A tag and a length of one byte each: no constant has 128 bytes.
        content = Array(element.dropFirst(2))
    }

    /// The identifier in DER, with tag and length.
    package var element: [UInt8] { DEREncoder.element(.objectIdentifier, content) }
}
