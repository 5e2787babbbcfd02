// The bytes that are signed: the only place that knows them. Client, gateway, load generator and
// tests share this module, so that all sign the same bytes.
//
// clientDataHash = SHA-256(client data), and the client data is one of three forms, chosen by the
// rule:
//
//   lines      the request, described in lines that each end in one LF; a part that the rule leaves
//              out is written as "-":
//
//                  portcullis-request-v1
//                  POST                          method, as in the request line
//                  /v1/orders?dry=1              target, as in the request line
//                  sha-256=:X48E9qOokqqrvd...=:  digest of the content
//                  AQEAAAAAAAAAA...              challenge
//                  idempotency-key: 8e03978e     one line a signed header field
//
//   content    the content's bytes, as in Apple's own sample
//   challenge  the challenge's bytes
//
// A signed header that the request does not carry is written as its bare name, without a colon, so
// that "absent" and "empty" differ. Several lines of one field are joined by ", " (RFC 9110 §5.3).
// A request without content signs the digest of zero bytes.
//
// No bytes are client data of two forms, nor of two rules of the line form that sign different
// parts or fields (`ClientDataDomain`, `RequestLines`):
//
// * Client data that begin with "portcullis-request-v" are lines, those that have the shape of a
//   challenge's text are a challenge, all others are content. Each form accepts its own alone.
// * No part holds a line feed (RFC 9110 §5.5, RFC 9112 §3), so the lines come apart again: the
//   fifth is always the challenge, and each from the sixth on is a field and begins with its name.
//   "-" is no target, digest or challenge of ours; as a method it is a token (RFC 9110 §9.1), and
//   refused where the method is signed.
// * An attestation is no assertion: Apple signs it, the device's key does not.
//
// Nothing here hashes: digests come in as 32 bytes.

/// The parts of a request that the line form can cover. Their order in the client data is fixed.
public struct SignedParts: OptionSet, Hashable, Sendable {
    /// One bit a part.
    public let rawValue: UInt8

    /// A set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The method's bytes in the request line.
    public static let method = SignedParts(rawValue: 1)
    /// The target's bytes in the request line, in origin-form with the query.
    public static let target = SignedParts(rawValue: 2)
    /// The SHA-256 digest of the content, transfer codings taken off, content codings untouched.
    public static let body = SignedParts(rawValue: 4)
    /// The text of the challenge field.
    public static let challenge = SignedParts(rawValue: 8)
    /// All four.
    public static let all: SignedParts = [.method, .target, .body, .challenge]

    /// The parts by the names that rules and clients use, in the order of the lines.
    package static let named: [(name: String, part: SignedParts)] = [
        ("method", .method), ("target", .target), ("body", .body), ("challenge", .challenge),
    ]

    /// The names of the parts, in the order of the lines.
    package var names: [String] { Self.named.filter { contains($0.part) }.map(\.name) }
}

/// What an assertion signs on a route.
public enum SigningForm: Hashable, Sendable {
    /// The request described in lines, then one line for each header, in this order.
    ///
    /// Header names are in lower case.
    case lines(SignedParts, headers: [String])
    /// The content's bytes, nothing else.
    case content
    /// The challenge's bytes, nothing else.
    case challenge

    /// Whether the content takes part in the signature.
    public var coversBody: Bool {
        switch self {
        case .lines(let parts, _): parts.contains(.body)
        case .content: true
        case .challenge: false
        }
    }
}
