import Encodings

/// The client data of an attestation: what the app hashes and hands to `attestKey`, or on Android
/// to `setAttestationChallenge`.
///
/// Without a context it is the challenge's text alone, as in Apple's documentation. With one it is
/// three lines, each ended by one LF:
///
///     portcullis-enrolment-v1
///     AQEAAAAAAAAAA...              challenge
///     sha-256=:X48E9qOokqqrvd...=:  digest of the context
///
/// A context is what the app stores with its key, such as an account's identifier. The attestation
/// covers it, so the key can't be enrolled with another context.
public enum EnrolmentLines {
    /// The most bytes of a context. It has one at least.
    public static let contextBytesMax = 256

    private static let version = Array("portcullis-enrolment-v1\n".utf8)
    private static let digestStart = Array("sha-256=:".utf8)
    private static let digestEnd = Array(":\n".utf8)
    private static let lineFeed = UInt8(ascii: "\n")

    /// The client data of an attestation.
    ///
    /// - Parameters:
    ///   - challenge: the text of the enrolment challenge, as the gateway gave it.
    ///   - contextDigest: SHA-256 of the context, 32 bytes; `nil` for an enrolment without one.
    /// - Returns: SHA-256 of it is what `attestKey` and `setAttestationChallenge` take.
    public static func clientData(challenge: [UInt8], contextDigest: [UInt8]?) -> [UInt8] {
        guard let contextDigest else { return challenge }
        var bytes = version
        bytes += challenge
        bytes.append(lineFeed)
        bytes += digestStart
        Base64.append(ContiguousArray(contextDigest).span, to: &bytes)
        return bytes + digestEnd
    }

    /// The client data of an attestation, for a challenge as a string.
    public static func clientData(challenge: String, contextDigest: [UInt8]?) -> [UInt8] {
        clientData(challenge: Array(challenge.utf8), contextDigest: contextDigest)
    }
}
