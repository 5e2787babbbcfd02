internal import Cryptography
internal import StrictCBOR

/// An assertion as a client sends it, read and not judged.
///
///     {"signature": DER ECDSA, "authenticatorData": 37 bytes, then nothing or one CBOR map}
///
/// Exactly these keys, in either order, strict CBOR. Each request brings one, so the bytes are
/// read once, without copies and without a tree.
///
/// Before iOS 27 the flags are 0x40, "attested credential data included", although there is none: a
/// parser of WebAuthn that obeys them reads past the end of every genuine assertion.
public struct UnverifiedAssertion: Sendable {
    /// The longest object that is read. 140…258 bytes have been seen.
    public static let bytesMax = 1024

    /// The object.
    public let bytes: [UInt8]
    /// Which app the object claims to come from.
    public let appIDHash: AppIDHash
    /// The flags byte, for people to look at. It decides nothing.
    public let flags: UInt8
    /// The counter the object claims.
    public let counter: SignCounter
    /// What 27 and later say about the build.
    public let extensions: AuthenticatorExtensions

    let signature: Range<Int>
    let authenticatorData: Range<Int>

    private static let signatureKey = Array("signature".utf8)
    private static let authenticatorDataKey = Array("authenticatorData".utf8)

    /// Reads an object. Throws `.malformed`.
    public init(bytes: [UInt8]) throws(AssertionRefusal) {
        do throws(CBORError) {
            let parts = try Self.parts(bytes.span)
            signature = parts.signature
            authenticatorData = parts.authenticatorData
            guard let head = AuthenticatorHead(bytes.span, authenticatorData) else {
                throw CBORError(.truncated, at: authenticatorData.upperBound)
            }
            appIDHash = head.appIDHash
            flags = head.flags
            counter = head.counter
            let rest = authenticatorData.dropFirst(AuthenticatorHead.byteCount)
            extensions = rest.isEmpty ? .none : try AuthenticatorExtensions(bytes.span, rest)
        } catch {
            throw AssertionRefusal(.malformed, "\(error.reason.rawValue) at \(error.offset)")
        }
        self.bytes = bytes
    }

    /// Reads an object, from `Data` or any other bytes. Throws `.malformed`.
    public init(bytes: some Sequence<UInt8>) throws(AssertionRefusal) {
        try self.init(bytes: Array(bytes))
    }

    private static func parts(
        _ bytes: Span<UInt8>
    ) throws(CBORError) -> (signature: Range<Int>, authenticatorData: Range<Int>) {
        var cursor = try CBORCursor(
            0..<bytes.count,
            budget: CBORBudget(octetsMax: bytesMax, depthMax: 1, itemsMax: 5)
        )
        guard try cursor.map(in: bytes) == 2 else { throw CBORError(.unexpectedType, at: 0) }
        var signature: Range<Int>?
        var authenticatorData: Range<Int>?
        for _ in 0..<2 {
            let start = cursor.offset
            let key = try cursor.text(in: bytes)
            if bytes.equals(key, signatureKey) {
                guard signature == nil else { throw CBORError(.duplicateKey, at: start) }
                signature = try cursor.bytes(in: bytes)
            } else if bytes.equals(key, authenticatorDataKey) {
                guard authenticatorData == nil else { throw CBORError(.duplicateKey, at: start) }
                authenticatorData = try cursor.bytes(in: bytes)
            } else {
                throw CBORError(.unexpectedType, at: start)
            }
        }
        try cursor.finish()
        guard let signature, let authenticatorData else {
            throw CBORError(.unexpectedType, at: 0)
        }
        return (signature, authenticatorData)
    }
}
