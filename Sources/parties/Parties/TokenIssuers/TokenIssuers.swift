import KeyStore
package import Rules
package import Services
import Signatures
import Synchronization
import Tokens
package import Verification

/// The issuers of JSON Web Tokens, each of which is a proof of `kind: jwt`: their sets of keys, by
/// which tokens are verified here.
///
/// Its state has a lock: checks are made on the queues of a start, a reload and operators' orders.
package final class TokenIssuers: ProofParty {
    private struct State {
        /// By address; those of the running configuration, and of one that is being read.
        var sets: [KeySetAddress: FetchedKeySet] = [:]
        var isEnded = false
    }

    private let context: PartyContext
    private let state = Mutex(State())

    package init(_ settings: [JWTSettings], _ context: PartyContext) { self.context = context }

    /// A set of keys that is new begins to be fetched, from its copy on disk.
    package func checker(_ settings: JWTSettings, _ apps: [AppPolicy]) -> any TokenChecker {
        let source: TokenCheck.Source =
            switch settings.keys {
            case .set(let keys): .fixed(keys)
            case .address(let address): .fetched(set(address, settings.name))
            }
        return TokenCheck(
            verifier: TokenVerifier(settings.terms),
            source: source,
            decider: context.decider
        )
    }

    private func set(_ address: KeySetAddress, _ name: String) -> FetchedKeySet {
        let (set, isNew) = state.withLock { state in
            if let set = state.sets[address] { return (set, false) }
            let set = FetchedKeySet(address, name: name, context)
            state.sets[address] = set
            return (set, !state.isEnded)
        }
        if isNew { set.start() }
        return set
    }

    package func serves(_ settings: [JWTSettings]) {}

    /// Other sets are no longer fetched.
    package func loaded(_ settings: [JWTSettings]) {
        let used = Set(settings.compactMap(\.keySetAddress))
        let unused = state.withLock { state in
            let unused = state.sets.filter { !used.contains($0.key) }
            for address in unused.keys { state.sets[address] = nil }
            return unused
        }
        for set in unused.values { set.end() }
    }

    package var facts: [any PartyFacts] {
        [state.withLock(\.sets).values.map(\.facts).sorted { $0.proof < $1.proof }]
    }

    package func end() {
        let sets = state.withLock { state in
            state.isEnded = true
            return state.sets
        }
        for set in sets.values { set.end() }
    }
}

/// Checks the tokens of one issuer.
struct TokenCheck: TokenChecker {
    /// Where the issuer's keys come from.
    enum Source: Sendable {
        case fixed(TokenKeySet)
        case fetched(FetchedKeySet)

        var keys: TokenKeySet? {
            switch self {
            case .fixed(let keys): keys
            case .fetched(let set): set.keys
            }
        }
    }

    let verifier: TokenVerifier
    let source: Source
    /// Remembers the tokens that are good once.
    let decider: Decider

    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        guard let keys = source.keys else { return .known(.unavailable) }
        let verified: VerifiedToken
        do throws(TokenFault) {
            verified = try verifier.verified(token.text.span, keys, now: token.now.seconds)
        } catch {
            if error == .unknownKey, case .fetched(let set) = source { set.missed() }
            return .known(TokenFinding(error))
        }
        guard let use = verified.use else { return .known(.good) }
        decider.spend(SpentToken(use, end: verified.end)) { outcome in
            switch outcome {
            case .fresh: found(.good)
            case .spent: found(.spent)
            case .failed: found(.unavailable)
            }
        }
        return .afterCommit
    }
}

extension TokenFinding {
    fileprivate init(_ fault: TokenFault) {
        self =
            switch fault {
            case .malformed: .malformed
            case .algorithm, .unknownKey, .signature, .issuer: .invalid
            case .expired, .notYet: .expired
            case .type, .audience, .claim, .use: .refused
            }
    }
}
