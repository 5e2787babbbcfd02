import Encodings

/// The form that some client data belongs to. It belongs to one form: no other form accepts it.
///
/// An assertion does not say in which form its client data were written. Suppose the same bytes
/// were good in two forms. Then an assertion made for one rule would be good at another rule that
/// signs in the other form, and that rule might not check what prevents a second use (a challenge).
/// So each form accepts only its own domain, and the first bytes of client data tell the domain.
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
