internal import Cryptography

/// The first 37 bytes of authenticator data, in attestations and assertions alike.
///
///     offset  bytes
///          0      32   SHA-256 of the App ID
///         32       1   flags, which are not reliable and decide nothing
///         33       4   counter, big-endian
struct AuthenticatorHead {
    static let byteCount = 37

    let appIDHash: AppIDHash
    let flags: UInt8
    let counter: SignCounter

    /// Reads the head at the front of a range; `nil` when it is too short.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        guard range.count >= Self.byteCount, range.upperBound <= bytes.count else { return nil }
        let start = range.lowerBound
        guard let hash = SHA256Digest(bytes.extracting(start..<(start + 32))) else { return nil }
        appIDHash = AppIDHash(hash)
        flags = bytes[start + 32]
        var counter: UInt32 = 0
        for index in (start + 33)..<(start + 37) { counter = counter << 8 | UInt32(bytes[index]) }
        self.counter = SignCounter(rawValue: counter)
    }
}
