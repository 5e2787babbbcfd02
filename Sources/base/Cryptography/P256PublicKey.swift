internal import COpenSSL

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
