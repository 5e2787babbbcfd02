internal import Cryptography

/// The first 37 octets of authenticator data, in attestations and assertions alike.
///
///     offset  octets
///          0      32   SHA-256 of the App ID
///         32       1   flags, which say nothing reliable and drive nothing
///         33       4   counter, big-endian
struct AuthenticatorHead {
    static let octets = 37

    let appIDHash: AppIDHash
    let flags: UInt8
    let counter: SignCounter

    /// Reads the head at the front of a range; `nil` when it is too short.
    init?(_ octets: Span<UInt8>, _ range: Range<Int>) {
        guard range.count >= Self.octets, range.upperBound <= octets.count else { return nil }
        let start = range.lowerBound
        guard let hash = SHA256Digest(octets.extracting(start..<(start + 32))) else { return nil }
        appIDHash = AppIDHash(hash)
        flags = octets[start + 32]
        var counter: UInt32 = 0
        for index in (start + 33)..<(start + 37) { counter = counter << 8 | UInt32(octets[index]) }
        self.counter = SignCounter(rawValue: counter)
    }
}
