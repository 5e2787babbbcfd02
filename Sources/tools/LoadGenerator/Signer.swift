import AppAttest
import Encodings
import SoftwareAuthenticator

/// Signs during the run, with keys that are made when they are first needed.
struct Signer {
    private let fleet: FleetDevices
    private let template: RequestTemplate
    private var hasher = ContentHasher()
    private var keys: [Int: SoftwareKey] = [:]
    private var mint: TokenMint?
    /// The number of assertions, and the nanoseconds for all of them.
    private(set) var count: UInt64 = 0
    private(set) var nanoseconds: UInt64 = 0

    /// - mint: makes the tokens of phones; `nil` where they show none.
    init(_ fleet: FleetDevices, _ template: RequestTemplate, _ mint: TokenMint? = nil) {
        self.fleet = fleet
        self.template = template
        self.mint = mint
    }

    /// Counts the time of a signature, by the caller's clock.
    mutating func note(nanoseconds spent: UInt64) {
        count += 1
        nanoseconds += spent
    }

    /// Signs one of the contents with a key of the fleet.
    mutating func sign(
        device index: Int,
        counter: UInt32,
        content: Int,
        challenge: [UInt8],
        into proof: inout ProofTexts
    ) {
        var key = key(index)
        sign(&key, counter, content, challenge, into: &proof)
    }

    private mutating func key(_ index: Int) -> SoftwareKey {
        let key = keys[index] ?? fleet.key(index)
        if keys[index] == nil { keys[index] = key }
        return key
    }

    /// Adds a token to a proof that was signed before the clock started. A token is good for
    /// minutes, so it is made when its request is due.
    mutating func addToken(device index: Int, content: Int, to proof: inout ProofTexts) {
        guard mint != nil else { return }
        let hash = hash(content, proof.challenge)
        let key = key(index)
        proof.token = mint?.token(of: key, over: hash) ?? []
    }

    private mutating func hash(_ content: Int, _ challenge: [UInt8]) -> [UInt8] {
        hasher.hash(
            template,
            template.contents[content],
            challenge: challenge.isEmpty ? nil : challenge
        )
    }

    /// Signs with a key that no gateway knows.
    mutating func signAsStranger(_ index: Int, challenge: [UInt8], into proof: inout ProofTexts) {
        var key = fleet.stranger(index)
        sign(&key, 1, 0, challenge, into: &proof)
    }

    private mutating func sign(
        _ key: inout SoftwareKey,
        _ counter: UInt32,
        _ content: Int,
        _ challenge: [UInt8],
        into proof: inout ProofTexts
    ) {
        let hash = hash(content, challenge)
        key.counter = SignCounter(rawValue: counter - 1)
        proof.keyID = Base64.encode(key.keyID.bytes)
        proof.assertion = key.assertionText(clientDataHash: hash)
        proof.challenge = challenge
        proof.token = mint?.token(of: key, over: hash) ?? []
    }
}
