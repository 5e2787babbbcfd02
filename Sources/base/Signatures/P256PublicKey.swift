internal import Crypto
internal import Encodings
internal import Foundation

/// A public key on the curve P-256 (FIPS 186-4; secp256r1, prime256v1), the only curve of App
/// Attest keys.
///
/// A value of the 64 bytes `X ‖ Y`, which is written as `04 ‖ X ‖ Y` (X9.62, uncompressed). The
/// initialisers check that the point is on the curve. So does every verification, at 1/50 of its
/// cost.
public struct P256PublicKey: Hashable, Sendable {
    private let x: Block32
    private let y: Block32

    /// Reads an uncompressed X9.62 point of 65 bytes; `nil` for any other form and for a point that
    /// is not on the curve.
    public init?(x963: Span<UInt8>) {
        guard x963.count == 65, x963[0] == 4 else { return nil }
        self.init(raw: x963.extracting(1..<65))
    }

    /// Reads the 64 bytes `X ‖ Y`; `nil` for another length and for a point that is not on the
    /// curve.
    public init?(raw: Span<UInt8>) {
        guard raw.count == 64 else { return nil }
        (x, y) = raw.withUnsafeBytes { bytes in
            (Block32(bytes), Block32(UnsafeRawBufferPointer(rebasing: bytes[32...])))
        }
        guard cryptoKey != nil else { return nil }
    }

    /// Reads an uncompressed X9.62 point. See ``init(x963:)-(Span<UInt8>)``.
    public init?(x963: [UInt8]) { self.init(x963: ContiguousArray(x963).span) }

    /// Reads an uncompressed X9.62 point, from `Data` or any other bytes. See
    /// ``init(x963:)-(Span<UInt8>)``.
    public init?(x963: some Sequence<UInt8>) { self.init(x963: Array(x963)) }

    /// The X9.62 point as an array of 65 bytes.
    public var x963: [UInt8] {
        withX963 { Array($0) }
    }

    /// SHA-256 of the 65 bytes: what App Attest calls the key id.
    package var digest: SHA256Digest {
        withX963 { bytes in
            // The bytes outlive the call.
            SHA256.digest(Span(_unsafeBytes: bytes))
        }
    }

    /// Lends the 65 bytes of the X9.62 point, which lie on the stack.
    private func withX963<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: 65, alignment: 1) { point in
            // 04, then two times 32 bytes, are the 65 of the buffer.
            point.storeBytes(of: 4, as: UInt8.self)
            withUnsafeBytes(of: (x.bytes, y.bytes)) { bytes in
                UnsafeMutableRawBufferPointer(rebasing: point[1...]).copyMemory(from: bytes)
            }
            return body(UnsafeRawBufferPointer(point))
        }
    }

    /// The key as a type of swift-crypto; `nil` for coordinates outside the field and for a point
    /// off the curve. The cofactor is one, so every other point is a public key.
    private var cryptoKey: Crypto.P256.Signing.PublicKey? {
        withX963 { try? Crypto.P256.Signing.PublicKey(x963Representation: $0) }
    }
}

extension P256PublicKey {
    /// Whether `signature` (DER) is one of this key over this SHA-256 digest.
    ///
    /// Either value of `s` is valid. Malformed signatures are not: the DER is read here, strictly
    /// and without allocating, and the numbers' ranges are checked by the verification (SEC 1
    /// §4.1.4 step 1).
    public func isValidSignature(_ signature: Span<UInt8>, digest: SHA256Digest) -> Bool {
        guard let parts = ECDSASignature(signature, integerBytesMax: 32) else { return false }
        return parts.withPair(of: signature, integerBytes: 32) { isValid(pair: $0, digest) }
    }

    /// Whether `signature` is one of this key over SHA-256 of this message, as JSON Web Signatures
    /// have it: r and s, 32 bytes each, big-endian (RFC 7518 §3.4).
    package func isValidJOSESignature(_ signature: Span<UInt8>, message: Span<UInt8>) -> Bool {
        signature.count == 64
            && signature.withUnsafeBytes { isValid(pair: $0, SHA256.digest(message)) }
    }

    private func isValid(pair: UnsafeRawBufferPointer, _ digest: SHA256Digest) -> Bool {
        // A PublicKey can't hold a point that is not on the curve. If it did, it would verify
        // nothing.
        let pair = try? Crypto.P256.Signing.ECDSASignature(rawRepresentation: pair)
        guard let key = cryptoKey, let pair else { return false }
        return key.isValidSignature(pair, for: HashedMessage(digest: digest))
    }

    /// Whether `signature` (DER) is one of this key over SHA-256 of this message.
    public func isValidSignature(_ signature: Span<UInt8>, message: Span<UInt8>) -> Bool {
        isValidSignature(signature, digest: SHA256.digest(message))
    }
}

/// The places of the two numbers in a DER ECDSA signature.
///
///     SEQUENCE (0x30) length { INTEGER (0x02) length r, INTEGER (0x02) length s }
///
/// RFC 3279 §2.2.3.
///
/// Read strictly: short-form lengths, minimal non-negative integers that fit their bytes, nothing
/// left over. Whether they are below the order is checked by the verification (SEC 1 §4.1.4 step
/// 1). `s` may be above half the order: App Attest does not normalise it.
package struct ECDSASignature {
    package let r: Range<Int>
    package let s: Range<Int>

    package init?(_ bytes: Span<UInt8>, integerBytesMax: Int) {
        guard bytes.count >= 8, bytes.count < 0x82, bytes[0] == 0x30,
            Int(bytes[1]) == bytes.count - 2,
            let r = Self.integer(bytes, at: 2, bytesMax: integerBytesMax),
            let s = Self.integer(bytes, at: r.upperBound, bytesMax: integerBytesMax),
            s.upperBound == bytes.count
        else { return nil }
        self.r = r
        self.s = s
    }

    /// Lends both numbers, each of `integerBytes` bytes, big-endian, on the stack.
    ///
    /// - bytes: the signature that was read, whose integers had this limit.
    func withPair<Result>(
        of bytes: Span<UInt8>,
        integerBytes: Int,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(byteCount: 2 * integerBytes, alignment: 1) { pair in
            pair.initializeMemory(as: UInt8.self, repeating: 0)
            copy(r, of: bytes, into: pair[..<integerBytes])
            copy(s, of: bytes, into: pair[integerBytes...])
            return body(UnsafeRawBufferPointer(pair))
        }
    }

    /// Writes a number right-aligned. A byte more than there is place for is the zero of the sign.
    private func copy(
        _ range: Range<Int>,
        of bytes: Span<UInt8>,
        into place: Slice<UnsafeMutableRawBufferPointer>
    ) {
        var place = place
        let count = min(range.count, place.count)
        for step in 0..<count {
            place[place.endIndex - count + step] = bytes[range.upperBound - count + step]
        }
    }

    private static func integer(
        _ bytes: Span<UInt8>,
        at offset: Int,
        bytesMax: Int
    ) -> Range<Int>? {
        guard bytes.count - offset >= 3, bytes[offset] == 0x02 else { return nil }
        let count = Int(bytes[offset + 1])
        let start = offset + 2
        // One byte more than the order has, for the sign.
        guard count >= 1, count <= bytesMax + 1, bytes.count - start >= count else { return nil }
        guard bytes[start] < 0x80 else { return nil }
        if bytes[start] == 0, count > 1, bytes[start + 1] < 0x80 { return nil }
        guard count <= bytesMax || bytes[start] == 0 else { return nil }
        return start..<(start + count)
    }
}

/// A digest that was made elsewhere, as swift-crypto takes it.
struct HashedMessage: Digest {
    static var byteCount: Int { 32 }

    let digest: SHA256Digest

    var description: String { "SHA-256 digest" }

    func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try digest.withUnsafeBytes(body)
    }

    func makeIterator() -> Array<UInt8>.Iterator { digest.array.makeIterator() }
}

extension P256PublicKey: Codable {
    /// Reads base64 of the X9.62 point of 65 bytes.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(otherwise: "not base64 of a point on P-256") {
            Base64.decode($0).flatMap { P256PublicKey(x963: $0) }
        }
    }

    /// Writes base64 of the X9.62 point of 65 bytes.
    public func encode(to encoder: any Encoder) throws {
        try encoder.encode(text: Base64.text(x963))
    }
}
