public import RequestBinding

/// What a route asks to be signed, and how.
public struct SigningRequirement: Hashable, Sendable {
    /// Whether a challenge is part of the proof.
    public enum Challenge: String, Hashable, Sendable {
        case required, optional, none
    }

    /// How counters are compared.
    public enum Counter: Hashable, Sendable {
        /// Each counter above the last one: one request at a time.
        case strict
        /// Any unused counter at most so far below the highest.
        case window(Int)
    }

    /// A kind of proof.
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
    public var needsContentDigest: Bool
    /// How counters are compared.
    public var counter: Counter
    /// The proofs that the route accepts.
    public var accepts: Set<Kind>
    /// Whether a new device token has to come with each request. See ``DeviceTokenService``.
    public var needsDeviceToken: Bool
    /// The fields that carry the proof.
    public var fields: ProofFields

    /// What a route asks. The defaults are those of the gateway's rules.
    public init(
        form: SigningForm = .lines(.all, headers: []),
        challenge: Challenge = .required,
        challengePointer: String? = nil,
        needsContentDigest: Bool = false,
        counter: Counter = .window(64),
        accepts: Set<Kind> = [.assertion],
        needsDeviceToken: Bool = false,
        fields: ProofFields = ProofFields()
    ) {
        self.form = form
        self.challenge = challenge
        self.challengePointer = challengePointer
        self.needsContentDigest = needsContentDigest
        self.counter = counter
        self.accepts = accepts
        self.needsDeviceToken = needsDeviceToken
        self.fields = fields
    }
}

/// The names of the fields that carry an assertion.
public struct ProofFields: Hashable, Sendable {
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
