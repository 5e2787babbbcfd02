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
