internal import ByteCoding
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

    /// Reads a text, in its one spelling: no sign or leading zero in the counter, no padding.
    public init?(_ text: [UInt8]) {
        guard text.count <= Self.bytesMax, let text = String(utf8: text) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "v1", let counter = UInt32(parts[1]),
            String(counter) == parts[1], let signature = Base64.decode(parts[2]),
            Base64.encodeURL(signature).elementsEqual(parts[2].utf8)
        else { return nil }
        self.counter = SignCounter(rawValue: counter)
        self.signature = signature
    }

    /// Whether the key signed this counter, package and client data.
    ///
    /// - clientDataHash: SHA-256 of the client data, 32 bytes.
    public func isValid(clientDataHash: [UInt8], package: String, key: P256PublicKey) -> Bool {
        let message = Self.message(
            package: package,
            counter: counter,
            clientDataHash: clientDataHash
        )
        guard let message else { return false }
        return key.isValidSignature(
            ContiguousArray(signature).span,
            message: ContiguousArray(message).span
        )
    }

    /// The bytes that a key signs; `nil` for a hash of another length, and for a package name that
    /// is none: one with a line's end could sign for another app.
    public static func message(
        package: String,
        counter: SignCounter,
        clientDataHash: [UInt8]
    ) -> [UInt8]? {
        guard clientDataHash.count == 32, (1...packageBytesMax).contains(package.utf8.count),
            package.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        var text = "portcullis-key-v1\n\(package)\n\(counter.rawValue)\n"
        text += Base64.text(clientDataHash) + "\n"
        return Array(text.utf8)
    }
}
