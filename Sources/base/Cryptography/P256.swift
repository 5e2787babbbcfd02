internal import COpenSSL

/// ECDSA on the curve P-256 (FIPS 186-4; secp256r1, prime256v1), the only curve of App Attest keys.
public enum P256 {
    /// A point of the curve.
    ///
    /// A value of 65 octets: `04 ‖ X ‖ Y` (X9.62, uncompressed). That the point lies on the curve
    /// is checked when the value is made and again, at 1/100 of the cost of a verification,
    /// whenever it is used.
    public struct PublicKey: Hashable, Sendable {
        /// The X9.62 point, 65 octets, inline.
        public let point: InlineArray<65, UInt8>

        /// Reads an uncompressed X9.62 point of 65 octets; `nil` for any other form and for a point
        /// that is not on the curve.
        public init?(x963: Span<UInt8>) {
            guard x963.count == 65, x963[0] == 4 else { return nil }
            var point = InlineArray<65, UInt8>(repeating: 0)
            for index in 0..<65 { point[index] = x963[index] }
            guard P256.isOnCurve(point) else { return nil }
            self.point = point
        }

        /// Reads the 64 octets `X ‖ Y`; `nil` for another length and for a point that is not on the
        /// curve.
        public init?(raw: Span<UInt8>) {
            guard raw.count == 64 else { return nil }
            var point = InlineArray<65, UInt8>(repeating: 4)
            for index in 0..<64 { point[index + 1] = raw[index] }
            guard P256.isOnCurve(point) else { return nil }
            self.point = point
        }

        /// Reads an uncompressed X9.62 point. See ``init(x963:)-(Span<UInt8>)``.
        public init?(x963: [UInt8]) {
            self.init(x963: x963.span)
        }

        /// The X9.62 point as an array of 65 octets.
        public var x963: [UInt8] {
            point.span.withUnsafeBufferPointer { Array($0) }
        }

        /// SHA-256 of the 65 octets: what App Attest calls the key id.
        public var digest: SHA256Digest {
            SHA256.digest(point.span)
        }

        /// Whether two keys are the same point.
        public static func == (left: Self, right: Self) -> Bool {
            for index in 0..<65 where left.point[index] != right.point[index] { return false }
            return true
        }

        /// Feeds the octets of the point.
        public func hash(into hasher: inout Hasher) {
            point.span.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    /// The curve's group.
    ///
    /// `@unchecked Sendable`: it is not changed after the initialiser, and OpenSSL reads a constant
    /// EC_GROUP from several threads.
    private final class Group: @unchecked Sendable {
        let pointer: OpaquePointer

        init() {
            guard let pointer = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else {
                preconditionFailure("P256: OpenSSL does not know P-256")
            }
            self.pointer = pointer
        }
    }

    private static let group = Group()

    /// EC_POINT_oct2point refuses coordinates outside the field and points off the curve; the
    /// cofactor is one, so that every other point is a public key.
    private static func isOnCurve(_ octets: InlineArray<65, UInt8>) -> Bool {
        guard let point = EC_POINT_new(group.pointer) else {
            preconditionFailure("P256: no memory")
        }
        defer { EC_POINT_free(point) }
        let isPoint = octets.span.withUnsafeBufferPointer { buffer in
            EC_POINT_oct2point(group.pointer, point, buffer.baseAddress, buffer.count, nil) == 1
        }
        if !isPoint { ERR_clear_error() }
        return isPoint
    }
}
