internal import Crypto
internal import Encodings
internal import Foundation
internal import Signatures

/// The two keys that the Play Console gives an app for tokens of Play Integrity's classic requests,
/// which are decoded on this machine.
///
/// Such a token is a JSON Web Token that was signed and then encrypted (RFC 7516 §7.1):
///
///     BASE64URL(header) "." BASE64URL(wrapped key) "." BASE64URL(nonce) "." BASE64URL(text) "."
///     BASE64URL(tag)
///
/// The header says A256KW and A256GCM (RFC 7518 §4.4, §5.3) and nothing else, and the text is a
/// token in the compact form, signed with ES256. Neither part chooses a key or an algorithm.
package struct ClassicTokenKeys: Sendable {
    /// The longest token, in bytes of base64url.
    package static let tokenBytesMax = 8_192
    /// The longest file with a key.
    package static let fileBytesMax = 1_024

    private let decryption: SymmetricKey
    private let verification: P256PublicKey

    /// What stands before the point in the DER of a key on P-256 (RFC 5480 §2).
    private static let pointPrefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    /// - decryption: a key of 32 bytes.
    /// - verification: a public key on P-256, in DER.
    package init?(decryption: [UInt8], verification: [UInt8]) {
        guard Self.isDecryptionKey(decryption), let key = Self.point(verification) else {
            return nil
        }
        self.decryption = SymmetricKey(data: decryption)
        self.verification = key
    }

    package static func isDecryptionKey(_ bytes: [UInt8]) -> Bool { bytes.count == 32 }
    package static func isVerificationKey(_ der: [UInt8]) -> Bool { point(der) != nil }

    private static func point(_ der: [UInt8]) -> P256PublicKey? {
        guard der.starts(with: pointPrefix) else { return nil }
        return P256PublicKey(x963: Array(der.dropFirst(pointPrefix.count)))
    }

    /// Reads the file of a key as the Play Console shows it: base64. `nil` for any other text.
    package static func key(ofFile file: [UInt8]) -> [UInt8]? {
        let space: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
        let text = file.filter { !space.contains($0) }
        return text.isEmpty ? nil : Base64.decode(text.span)
    }

    /// The payload of a token, a JSON text that Google has signed.
    ///
    /// Throws, in this order: `.malformed`; `.algorithm`; `.unknownKey`, where the token was not
    /// encrypted with the decryption key, or was changed; `.signature`.
    package func payload(of text: Span<UInt8>) throws(TokenFault) -> [UInt8] {
        let inner = try opened(text)
        guard let token = SignedToken(inner.span) else { throw .malformed }
        guard token.algorithm == TokenAlgorithm.es256.rawValue else { throw .algorithm }
        let signed = inner.span.extracting(token.signed)
        guard verification.isValidJOSESignature(token.signature.span, message: signed) else {
            throw .signature
        }
        return token.claims
    }

    /// What was encrypted, whatever it is. Throws as ``payload(of:)`` does, up to `.unknownKey`.
    package func opened(_ text: Span<UInt8>) throws(TokenFault) -> [UInt8] {
        guard text.count <= Self.tokenBytesMax, let parts = SignedToken.parts(text, 5) else {
            throw .malformed
        }
        let header = Self.decoded(text, parts[0])
        guard let header, let read = try? Self.header(header.span) else { throw .malformed }
        guard read == ["alg": "A256KW", "enc": "A256GCM"] else { throw .algorithm }
        guard let wrapped = Self.decoded(text, parts[1]), wrapped.count == 40,
            let nonce = Self.decoded(text, parts[2]), nonce.count == 12,
            let sealed = Self.decoded(text, parts[3]), !sealed.isEmpty,
            let tag = Self.decoded(text, parts[4]), tag.count == 16
        else { throw .malformed }
        let authenticated = text.extracting(parts[0]).withUnsafeBytes { Array($0) }
        do {
            let key = try AES.KeyWrap.unwrap(wrapped, using: decryption)
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: nonce),
                ciphertext: sealed,
                tag: tag
            )
            return Array(try AES.GCM.open(box, using: key, authenticating: authenticated))
        } catch {
            throw .unknownKey
        }
    }

    private static func decoded(_ text: Span<UInt8>, _ part: Range<Int>) -> [UInt8]? {
        Base64.decodeURL(text.extracting(part))
    }

    /// The members that decide how the token is read. `typ`, `cty` and `kid` say nothing here; all
    /// others could change its meaning.
    private static func header(_ text: Span<UInt8>) throws(JSONError) -> [String: String] {
        var reader = JSONReader()
        var names = MemberNames()
        var read: [String: String] = [:]
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            try names.add(name, reader)
            guard case .string(let value) = try reader.scalar(text) else {
                throw reader.error("a member is no string")
            }
            switch String(decoding: name, as: UTF8.self) {
            case "typ", "cty", "kid": break
            case let name: read[name] = String(decoding: value, as: UTF8.self)
            }
        }
        try reader.end(text)
        return read
    }
}
