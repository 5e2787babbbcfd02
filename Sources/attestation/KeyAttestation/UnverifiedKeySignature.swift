internal import Encodings
internal import Signatures

/// What an Android app sends with a request in the place of Apple's assertion:
///
///     v1.COUNTER.BASE64URL(signature)
///
/// The signature is SHA256withECDSA, DER, of these lines, each of them ended by LF:
///
///     portcullis-key-v1
///     com.example.shop
///     17
///     base64 of SHA-256 of the client data
///
/// Android's keystore counts no signatures, so the counter is the app's: it stops replays, and says
/// nothing of how often the key was used.
public struct UnverifiedKeySignature: Sendable {
    /// The longest text that is read: a signature of 72 bytes and a counter of ten digits need 110.
    public static let bytesMax = 128
    /// The longest package name that is signed: Android allows 223 characters.
    public static let packageBytesMax = 255

    /// The counter that the text claims.
    public let counter: SignCounter
    /// The signature, DER.
    let signature: [UInt8]

    private static let version = ContiguousArray("v1.".utf8)
    private static let domain = Array("portcullis-key-v1\n".utf8)
    private static let lineFeed = UInt8(ascii: "\n")
    private static let stop = UInt8(ascii: ".")

    /// Reads a text, in its one spelling: no sign or leading zero in the counter, no padding.
    public init?(_ text: [UInt8]) { self.init(ContiguousArray(text).span) }

    /// Reads a text of a head, where it stands.
    package init?(_ text: Span<UInt8>) {
        guard text.count <= Self.bytesMax, Self.begins(text) else { return nil }
        var place = Self.version.count
        var counter: UInt64 = 0
        while place < text.count, text[place] != Self.stop {
            let digit = text[place] &- UInt8(ascii: "0")
            // A zero that more digits follow.
            let isSpelled = counter > 0 || place == Self.version.count
            guard digit <= 9, isSpelled, counter <= UInt64(UInt32.max) else { return nil }
            counter = counter * 10 + UInt64(digit)
            place += 1
        }
        let start = place + 1
        guard place > Self.version.count, start < text.count,
            let number = UInt32(exactly: counter),
            let signature = Base64.decodeURL(text.extracting(start..<text.count))
        else { return nil }
        self.counter = SignCounter(rawValue: number)
        self.signature = signature
    }

    /// Whether a text is meant to be such a signature: no base64 has a full stop.
    package static func begins(_ text: Span<UInt8>) -> Bool {
        guard text.count >= version.count else { return false }
        for place in version.indices where text[place] != version[place] { return false }
        return true
    }

    /// Checks that the key signed this counter, package and client data, after the last signature
    /// that was accepted.
    ///
    /// - Parameters:
    ///   - clientDataHash: SHA-256 of the client data, 32 bytes.
    ///   - package: the package name of the app in which the key was attested.
    ///   - key: the key that was attested.
    ///   - stored: the counter of the last accepted signature, 0 after the attestation. A server
    ///     that accepts numbers out of order passes the one below its window, and looks itself
    ///     for a number that it has seen.
    /// - Returns: whether all of it holds.
    public func isValid(
        clientDataHash: [UInt8],
        package: String,
        key: P256PublicKey,
        after stored: SignCounter
    ) -> Bool {
        let hash = ContiguousArray(clientDataHash)
        return counter > stored && isValid(clientDataHash: hash.span, package: package, key: key)
    }

    /// Whether the key signed this counter, package and client data. The counter is for the caller:
    /// a store that others share compares and sets it in one step.
    ///
    /// - clientDataHash: SHA-256 of the client data, 32 bytes.
    package func isValid(clientDataHash: Span<UInt8>, package: String, key: P256PublicKey) -> Bool {
        let message = Self.message(
            package: package,
            counter: counter,
            clientDataHash: clientDataHash
        )
        guard let message else { return false }
        let (signature, bytes) = (ContiguousArray(signature), ContiguousArray(message))
        return key.isValidSignature(signature.span, message: bytes.span)
    }

    /// The bytes that a key signs; `nil` for a hash of another length, and for a package name that
    /// is none: one with a line's end could sign for another app.
    public static func message(
        package: String,
        counter: SignCounter,
        clientDataHash: [UInt8]
    ) -> [UInt8]? {
        let hash = ContiguousArray(clientDataHash)
        return message(package: package, counter: counter, clientDataHash: hash.span)
    }

    private static func message(
        package: String,
        counter: SignCounter,
        clientDataHash: Span<UInt8>
    ) -> [UInt8]? {
        guard clientDataHash.count == 32, (1...packageBytesMax).contains(package.utf8.count),
            package.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        var bytes = domain
        bytes.reserveCapacity(domain.count + package.utf8.count + 60)
        bytes.append(contentsOf: package.utf8)
        bytes.append(lineFeed)
        bytes.append(contentsOf: String(counter.rawValue).utf8)
        bytes.append(lineFeed)
        Base64.append(clientDataHash, to: &bytes)
        bytes.append(lineFeed)
        return bytes
    }
}
