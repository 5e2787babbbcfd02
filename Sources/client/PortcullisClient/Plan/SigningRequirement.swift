import Foundation
public import RequestBinding

/// What a route asks to be signed, and how.
public struct SigningRequirement: Hashable, Sendable {
    /// Whether a challenge is part of the proof.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Challenge: String, Hashable, Sendable {
        case required, optional, none
    }

    /// How counters are compared.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Counter: Hashable, Sendable {
        /// Each counter above the last one: one request at a time.
        case strict
        /// Any unused counter at most so far below the highest.
        case window(Int)
    }

    /// A kind of proof.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Kind: String, Hashable, Sendable {
        case assertion, session
    }

    /// The bytes that are signed: parts and fields in lines, the content, or a challenge.
    public var form: SigningForm
    /// Whether a challenge is part of the proof.
    public var challenge: Challenge
    /// Where the content holds the challenge, as a JSON pointer. The app has put one there.
    public var challengePointer: String?
    /// Whether `Content-Digest` has to come with the head, because content is passed on while it
    /// streams.
    public var needsContentDigest = false
    /// How counters are compared.
    public var counter: Counter
    /// The proofs that the route accepts.
    public var accepts: Set<Kind>
    /// Whether a new device token has to come with each request. See ``DeviceTokenService``.
    public var needsDeviceToken: Bool
    /// The fields that carry the proof.
    public var fields = ProofFieldNames()

    /// What a route asks. The defaults are those of the gateway's rules. What few rules ask is set
    /// afterwards: the challenge's pointer, a digest with the head, and other names of fields.
    public init(
        form: SigningForm = .lines(.all, headers: []),
        challenge: Challenge = .required,
        counter: Counter = .window(64),
        accepts: Set<Kind> = [.assertion],
        needsDeviceToken: Bool = false
    ) {
        self.form = form
        self.challenge = challenge
        self.counter = counter
        self.accepts = accepts
        self.needsDeviceToken = needsDeviceToken
    }
}

extension SigningRequirement {
    /// Whether a challenge goes in the field. With a pointer, the content has it.
    var needsChallengeField: Bool {
        if challengePointer != nil { return false }
        return challenge != .none || form == .challenge
    }

    /// Whether a session can stand for an assertion: the route says so, and signs enough.
    var takesSession: Bool {
        guard accepts.contains(.session), case .lines(let parts, _) = form else { return false }
        return parts.isSuperset(of: [.method, .target, .body])
    }
}

/// The names of the fields that carry an assertion.
public struct ProofFieldNames: Hashable, Sendable {
    /// The key id's field.
    public var keyID: String
    /// The assertion's field.
    public var assertion: String
    /// The challenge's field, in requests and answers.
    public var challenge: String
    /// The field of an app that can't attest.
    public var unsupported: String

    /// The names that rules use unless they say otherwise.
    public init(
        keyID: String = "App-Attest-Key-Id",
        assertion: String = "App-Attest-Assertion",
        challenge: String = "App-Attest-Challenge",
        unsupported: String = "App-Attest-Unsupported"
    ) {
        self.keyID = keyID
        self.assertion = assertion
        self.challenge = challenge
        self.unsupported = unsupported
    }
}

extension ProofFieldNames {
    /// Reads `key_id=x-key assertion=x-proof`. A word that is not known, and a name that is no
    /// token, are passed over: newer gateways may write more of them.
    init(words text: String) {
        self.init()
        for word in text.split(separator: " ") {
            let parts = word.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            var reader = FieldReader(String(parts[1]))
            guard let name = reader.token(), reader.isAtEnd else { continue }
            switch parts[0] {
            case "key_id": keyID = name
            case "assertion": assertion = name
            case "challenge": challenge = name
            case "unsupported": unsupported = name
            default: continue
            }
        }
    }
}

/// What an answer says about what its route signs.
struct RouteLesson: Hashable, Sendable {
    /// What is signed; `nil` for nothing.
    let form: SigningForm?
    /// The proofs that the route accepts; `nil` where the answer does not say.
    let accepts: Set<SigningRequirement.Kind>?
    /// How the route compares counters.
    let counter: SigningRequirement.Counter
    /// Whether each request has to bring a new device token.
    let needsDeviceToken: Bool
    /// Whether the rule only observes: it forwards what it would refuse.
    let observes: Bool
    /// The fields that carry the proof, where their names are not the usual ones; `nil` where the
    /// answer does not say.
    let fields: ProofFieldNames?
    /// Where the content holds the challenge; `nil` where the answer does not say.
    let challengePointer: String?

    /// The widest window of counters that a gateway has.
    static let windowMax = 64

    /// Reads the parameters of an answer:
    ///
    /// - `sign`: `method target body challenge` or a part of it, `content` or `challenge-text`.
    /// - `headers`: names between spaces. `accept`: kinds between spaces.
    /// - `counter`: the size of a window; anything else, or nothing, is strict.
    /// - `device`: `token`; anything else, or nothing, is no token.
    /// - `fields`: `key_id=x-key assertion=x-proof`, of the names that are not the usual ones.
    /// - `challenge_pointer`: percent-encoded, as in the fragment of a URI (RFC 6901 §6).
    ///
    /// - Parameters:
    ///   - parameters: by their names.
    ///   - observes: whether the answer was advice about a request that was forwarded.
    init?(_ parameters: [String: String], observes: Bool = false) {
        guard let sign = parameters["sign"] else { return nil }
        let words = sign.split(separator: " ")
        switch words {
        case ["content"]: form = .content
        case ["challenge-text"]: form = .challenge
        case []: form = nil
        default:
            guard let parts = SignedParts(names: words) else { return nil }
            let names = (parameters["headers"] ?? "").split(separator: " ").map { $0.lowercased() }
            form = .lines(parts, headers: names)
        }
        accepts = parameters["accept"].map {
            Set($0.split(separator: " ").compactMap { .init(rawValue: String($0)) })
        }
        let window = parameters["counter"].flatMap { Int($0) } ?? 0
        counter = (1...Self.windowMax).contains(window) ? .window(window) : .strict
        self.observes = observes
        needsDeviceToken = parameters["device"]?.split(separator: " ").contains("token") ?? false
        fields = parameters["fields"].map(ProofFieldNames.init(words:))
        challengePointer = parameters["challenge_pointer"]?.removingPercentEncoding
    }

    /// What the route asks, by this and by what was known before.
    func requirement(over known: SigningRequirement?) -> SigningRequirement? {
        guard let form else { return nil }
        var requirement = known ?? SigningRequirement()
        requirement.form = form
        requirement.counter = counter
        requirement.needsDeviceToken = needsDeviceToken
        if let accepts { requirement.accepts = accepts }
        if let fields { requirement.fields = fields }
        if let challengePointer { requirement.challengePointer = challengePointer }
        // The other forms have the challenge in its field.
        if form != .content { requirement.challengePointer = nil }
        switch form {
        case .lines(let parts, _):
            if !parts.contains(.challenge) {
                requirement.challenge = .none
            } else if requirement.challenge == .none {
                requirement.challenge = .required
            }
        case .challenge: requirement.challenge = .required
        case .content: break
        }
        return requirement
    }
}
