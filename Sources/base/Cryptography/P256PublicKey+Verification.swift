internal import Crypto
internal import Foundation

extension P256PublicKey {
    /// Whether `signature` (DER) is one of this key over this SHA-256 digest.
    ///
    /// Either value of `s` is valid. Malformed signatures are not: the DER is read here, strictly
    /// and without allocating, and the numbers' ranges are checked by the verification (SEC 1
    /// §4.1.4 step 1).
    public func isValidSignature(_ signature: Span<UInt8>, digest: SHA256Digest) -> Bool {
        guard let parts = ECDSASignature(signature, integerOctetsMax: 32) else { return false }
        var numbers = InlineArray<64, UInt8>(repeating: 0)
        Self.copy(signature, parts.r, into: &numbers, endingAt: 32)
        Self.copy(signature, parts.s, into: &numbers, endingAt: 64)
        return isValid(pair: numbers.span, digest)
    }

    /// Whether `signature` is one of this key over SHA-256 of this message, as JSON Web Signatures
    /// have it: r and s, 32 bytes each, big-endian (RFC 7518 §3.4).
    package func isValidJOSESignature(_ signature: Span<UInt8>, message: Span<UInt8>) -> Bool {
        signature.count == 64 && isValid(pair: signature, SHA256.digest(message))
    }

    private func isValid(pair: Span<UInt8>, _ digest: SHA256Digest) -> Bool {
        // A point that is not on the curve can't be in a PublicKey; were it in one, it would verify
        // nothing.
        let key = point.span.withUnsafeBytes {
            try? Crypto.P256.Signing.PublicKey(x963Representation: $0)
        }
        let pair = pair.withUnsafeBytes {
            try? Crypto.P256.Signing.ECDSASignature(rawRepresentation: $0)
        }
        guard let key, let pair else { return false }
        return key.isValidSignature(pair, for: HashedMessage(digest: digest))
    }

    /// Whether `signature` (DER) is one of this key over SHA-256 of this message.
    public func isValidSignature(_ signature: Span<UInt8>, message: Span<UInt8>) -> Bool {
        isValidSignature(signature, digest: SHA256.digest(message))
    }

    /// Writes a number of at most 33 bytes, the first of them zero when there are so many,
    /// right-aligned into 32.
    private static func copy(
        _ octets: Span<UInt8>,
        _ range: Range<Int>,
        into numbers: inout InlineArray<64, UInt8>,
        endingAt end: Int
    ) {
        let count = min(range.count, 32)
        for offset in 0..<count {
            numbers[end - count + offset] = octets[range.upperBound - count + offset]
        }
    }
}

/// A digest that was made elsewhere, as swift-crypto takes it.
private struct HashedMessage: Digest {
    static var byteCount: Int { 32 }

    let digest: SHA256Digest

    var description: String { "SHA-256 digest" }

    func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try digest.bytes.span.withUnsafeBytes(body)
    }

    func makeIterator() -> Array<UInt8>.Iterator { digest.octets.makeIterator() }
}
