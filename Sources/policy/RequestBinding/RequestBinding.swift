import Encodings

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
///
/// Frozen: whoever signs has to know all of its forms.
@frozen
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

/// The form that some client data belongs to. It belongs to one form: no other form accepts it.
///
/// An assertion does not say in which form its client data were written. Suppose the same bytes
/// were good in two forms. Then an assertion made for one rule would be good at another rule that
/// signs in the other form, and that rule might not check what prevents a second use (a challenge).
/// So each form accepts only its own domain, and the first bytes of client data tell the domain.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum ClientDataDomain: Hashable, Sendable {
    /// Begins with the name and version of the line form, this one or a later one.
    case lines
    /// Has the shape of a challenge's text: 56 characters of base64url, of which the first twelve
    /// bits are those of version 1.
    case challenge
    /// Everything else.
    case content

    /// The most bytes from the start that tell the domain.
    public static let startCount = 57

    private static let linesStart = Array("portcullis-request-v".utf8)
    private static let challengeStart = Array("AQ".utf8)
    private static let challengeCount = 56

    /// The domain of client data.
    ///
    /// - Parameter start: the first ``startCount`` bytes, or all of them where there are fewer.
    public init(of start: Span<UInt8>) {
        if Self.begins(start, with: Self.linesStart) {
            self = .lines
        } else if start.count == Self.challengeCount,
            Self.begins(start, with: Self.challengeStart),
            start.indices.allSatisfy({ start[$0].isAlphanumeric || "-_".utf8.contains(start[$0]) })
        {
            self = .challenge
        } else {
            self = .content
        }
    }

    private static func begins(_ bytes: Span<UInt8>, with start: [UInt8]) -> Bool {
        guard bytes.count >= start.count else { return false }
        for index in start.indices where bytes[index] != start[index] { return false }
        return true
    }
}

extension SigningForm {
    /// The only client data that this form accepts.
    public var domain: ClientDataDomain {
        switch self {
        case .lines: .lines
        case .content: .content
        case .challenge: .challenge
        }
    }
}
