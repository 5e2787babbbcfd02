import AppAttest
import ByteCoding
import SoftwareAuthenticator

/// Signs during the run, with keys that are made when they are first needed.
struct Signer {
    private let fleet: FleetDevices
    private let template: RequestTemplate
    private var hasher = ContentHasher()
    private var keys: [Int: SoftwareKey] = [:]
    /// The number of assertions, and the nanoseconds for all of them.
    private(set) var count: UInt64 = 0
    private(set) var nanoseconds: UInt64 = 0

    init(_ fleet: FleetDevices, _ template: RequestTemplate) {
        self.fleet = fleet
        self.template = template
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
        var key = keys[index] ?? fleet.key(index)
        if keys[index] == nil { keys[index] = key }
        sign(&key, counter, content, challenge, into: &proof)
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
        let hash = hasher.hash(
            template,
            template.contents[content],
            challenge: challenge.isEmpty ? nil : challenge
        )
        key.counter = SignCounter(rawValue: counter - 1)
        proof.keyID = Base64.encode(key.keyID.bytes)
        proof.assertion = key.assertionText(clientDataHash: hash)
        proof.challenge = challenge
    }
}
