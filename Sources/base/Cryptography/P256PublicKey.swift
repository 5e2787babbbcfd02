internal import ByteCoding
internal import COpenSSL
internal import Crypto
internal import Foundation

/// A public key on the curve P-256 (FIPS 186-4; secp256r1, prime256v1), the only curve of App
/// Attest keys.
///
/// A value of 65 bytes: `04 ‖ X ‖ Y` (X9.62, uncompressed). The initialisers check that the point
/// is on the curve. So does every verification, at 1/100 of its cost.
public struct P256PublicKey: Hashable, Sendable {
    /// The X9.62 point, 65 bytes, inline.
    package let point: InlineArray<65, UInt8>

    /// Reads an uncompressed X9.62 point of 65 bytes; `nil` for any other form and for a point that
    /// is not on the curve.
    public init?(x963: Span<UInt8>) {
        guard x963.count == 65, x963[0] == 4 else { return nil }
        var point = InlineArray<65, UInt8>(repeating: 0)
        for index in 0..<65 { point[index] = x963[index] }
        guard Self.isOnCurve(point) else { return nil }
        self.point = point
    }

    /// Reads the 64 bytes `X ‖ Y`; `nil` for another length and for a point that is not on the
    /// curve.
    public init?(raw: Span<UInt8>) {
        guard raw.count == 64 else { return nil }
        var point = InlineArray<65, UInt8>(repeating: 4)
        for index in 0..<64 { point[index + 1] = raw[index] }
        guard Self.isOnCurve(point) else { return nil }
        self.point = point
    }

    /// Reads an uncompressed X9.62 point. See ``init(x963:)-(Span<UInt8>)``.
    public init?(x963: [UInt8]) {
        self.init(x963: x963.span)
    }

    /// Reads an uncompressed X9.62 point, from `Data` or any other bytes. See
    /// ``init(x963:)-(Span<UInt8>)``.
    public init?(x963: some Sequence<UInt8>) {
        self.init(x963: Array(x963))
    }

    /// The X9.62 point as an array of 65 bytes.
    public var x963: [UInt8] {
        point.span.withUnsafeBufferPointer { Array($0) }
    }

    /// SHA-256 of the 65 bytes: what App Attest calls the key id.
    package var digest: SHA256Digest {
        SHA256.digest(point.span)
    }

    /// Whether two keys are the same point.
    public static func == (left: Self, right: Self) -> Bool {
        for index in 0..<65 where left.point[index] != right.point[index] { return false }
        return true
    }

    /// Feeds the bytes of the point.
    public func hash(into hasher: inout Hasher) {
        point.span.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// The curve's group.
    ///
    /// `@unchecked Sendable`: it is not changed after the initialiser, and OpenSSL reads a constant
    /// EC_GROUP from several threads.
    private final class Group: @unchecked Sendable {
        let pointer: OpaquePointer

        init() {
            guard let pointer = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else {
                preconditionFailure("P256PublicKey: OpenSSL does not know P-256")
            }
            self.pointer = pointer
        }
    }

    private static let group = Group()

    /// EC_POINT_oct2point refuses coordinates outside the field and points off the curve; the
    /// cofactor is one, so that every other point is a public key.
    private static func isOnCurve(_ bytes: InlineArray<65, UInt8>) -> Bool {
        guard let point = EC_POINT_new(group.pointer) else {
            preconditionFailure("P256PublicKey: no memory")
        }
        defer { EC_POINT_free(point) }
        let isPoint = bytes.span.withUnsafeBufferPointer { buffer in
            EC_POINT_oct2point(group.pointer, point, buffer.baseAddress, buffer.count, nil) == 1
        }
        if !isPoint { ERR_clear_error() }
        return isPoint
    }
}

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

    /// Writes a number of at most 33 bytes, the first of them zero when there are 33,
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

extension P256PublicKey: Codable {
    /// Reads base64 of the X9.62 point of 65 bytes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let bytes = Base64.decode(text), let key = P256PublicKey(x963: bytes) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not base64 of a point on P-256"
            )
        }
        self = key
    }

    /// Writes base64 of the X9.62 point of 65 bytes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64.text(x963))
    }
}
