/// A proof of the section `proofs`, as rules refer to it: a token that says something about a
/// client, and nothing about the request that carries it.
///
/// A reference, so that a verdict names it at the price of one count. How the token is checked are
/// the settings of its kind, which rules need not know.
package final class TokenProof: Sendable {
    /// Where a request carries the token.
    package enum Place: Hashable, Sendable {
        /// In the only field of this name, in lower case. In `authorization` the token follows the
        /// scheme `Bearer` (RFC 6750 §2.1).
        case field([UInt8])
        /// In the only cookie of this name (RFC 6265 §4.2).
        case cookie([UInt8])

        /// `field x-firebase-appcheck`, `cookie human`
        package var text: String {
            switch self {
            case .field(let name): "field \(String(decoding: name, as: UTF8.self))"
            case .cookie(let name): "cookie \(String(decoding: name, as: UTF8.self))"
            }
        }
    }

    /// Stable; appears in rules, logs, metrics and the origin's field.
    package let name: String
    /// Its place in the configuration.
    package let index: Int
    package let place: Place
    /// What happens to a request whose token can't be checked, since a party failed.
    package let onError: DependencyErrorRule
    /// Whether the store has to remember a token before it is good.
    package let needsStore: Bool

    package init(
        name: String,
        index: Int,
        place: Place,
        onError: DependencyErrorRule = .refuse,
        needsStore: Bool = true
    ) {
        self.name = name
        self.index = index
        self.place = place
        self.onError = onError
        self.needsStore = needsStore
    }

    /// Whether a request with a good token passes while the store fails.
    var passesWithoutStore: Bool { !needsStore || onError == .forward }
}

extension TokenProof: Hashable {
    package static func == (left: TokenProof, right: TokenProof) -> Bool {
        left === right
            || left.name == right.name && left.index == right.index && left.place == right.place
                && left.onError == right.onError && left.needsStore == right.needsStore
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// Which proofs a rule accepts. One of them is enough.
package struct AcceptRule: Hashable, Sendable {
    /// An assertion of the device's key with every request.
    package let takesAssertions: Bool
    /// A session which was opened with an assertion.
    package let takesSessions: Bool
    /// Tokens that stand in the place of a signature, in the order in which they are tried.
    package let tokens: [TokenProof]

    package init(assertions: Bool, sessions: Bool, tokens: [TokenProof] = []) {
        takesAssertions = assertions
        takesSessions = sessions
        self.tokens = tokens
    }

    package static let assertion = AcceptRule(assertions: true, sessions: false)
    package static let assertionOrSession = AcceptRule(assertions: true, sessions: true)

    /// The proofs that sign the request, as rules and the wire name them, assertion first.
    package var signedNames: [String] {
        (takesAssertions ? ["assertion"] : []) + (takesSessions ? ["session"] : [])
    }

    /// All proofs as rules name them, the strongest first.
    package var names: [String] { signedNames + tokens.map(\.name) }
}

/// The treatment of a request that says that its device can't attest.
///
/// The claim proves nothing: any client can send the field.
package enum UnsupportedRule: Hashable, Sendable {
    /// Refused like a request that proves nothing.
    case refuse
    /// Forwarded, marked, and counted apart.
    case forward
    /// Admitted with this token in the place of a signature.
    case require(TokenProof)
}
