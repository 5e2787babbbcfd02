import AppAttest
import KeyStore
import TestSupport

/// What the origin has executed, and what clients and operators were told: the promises are about
/// nothing else.
struct PromiseLedger {
    /// A promise that did not hold.
    struct Broken: Error, CustomStringConvertible {
        let promise: Promise
        let description: String
    }

    /// The promises, by their names in `Sources/docs/promises.md`.
    enum Promise: CaseIterable {
        case admittedOnce
        case enrolmentStays
        case revokedFromThen
        case countersOnlyRise
    }

    /// For how long after a revocation a gateway that heard nothing of it may take sessions of the
    /// key: `revoked_within`.
    let knowledgeLifetime: Int64

    private(set) var executed: Set<Int> = []
    private(set) var enrolled: Set<KeyID> = []
    private(set) var revoked: [KeyID: Int64] = [:]
    /// The highest counter of each key with which a request was executed that waited for the store.
    private(set) var highest: [KeyID: SignCounter] = [:]
    /// Requests that were refused, for the count: a run that admits nothing proves nothing.
    var refusedCount = 0

    init(knowledgeLifetime: Int64) { self.knowledgeLifetime = knowledgeLifetime }

    /// The origin has executed a request.
    mutating func execute(_ request: SignedRequest, now: Int64) throws(Broken) {
        guard executed.insert(request.number).inserted else {
            throw Broken(promise: .admittedOnce, description: "request \(request.number) twice")
        }
        if let second = revoked[request.keyID],
            request.isByAssertion || now > second + knowledgeLifetime
        {
            throw Broken(
                promise: .revokedFromThen,
                description: "request \(request.number) at \(now), revoked at \(second)"
            )
        }
        if case .assertion(let counter, _, challenge: nil) = request.proof {
            highest[request.keyID] = max(highest[request.keyID] ?? .zero, counter)
        }
    }

    /// An app was told that its key is enrolled.
    mutating func enrol(_ keyID: KeyID) { enrolled.insert(keyID) }

    /// An operator was told that a key is revoked.
    mutating func revoke(_ keyID: KeyID, now: Int64) {
        if revoked[keyID] == nil { revoked[keyID] = now }
    }

    /// Compares what was told of these keys with what is durable.
    func check(_ keyIDs: some Sequence<KeyID>, _ stored: (KeyID) throws -> KeyRecord?) throws {
        for keyID in keyIDs where enrolled.contains(keyID) {
            guard let record = try stored(keyID) else {
                throw Broken(promise: .enrolmentStays, description: "an enrolled key is not stored")
            }
            if revoked[keyID] != nil, case .active = record.status {
                throw Broken(promise: .revokedFromThen, description: "a revoked key is active")
            }
            guard record.counters.highest >= highest[keyID] ?? .zero else {
                throw Broken(
                    promise: .countersOnlyRise,
                    description: "\(record.counters.highest) after \(highest[keyID] ?? .zero)"
                )
            }
        }
    }
}
