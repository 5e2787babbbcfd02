import ConfigurationReading
import EventLoops
import KeyStore
import Logging
import OutboundCalls
import Parties
import Proxy
import Rules
import Services
import Signatures
import Synchronization
import Tokens
import Verification

/// The checks of the section `proofs`, and what they need between reloads: sets of keys.
///
/// Its state has a lock: settings are made on the queues of a start, a reload and operators'
/// orders.
final class ProofChecks: Sendable {
    private struct State {
        /// By address; those of the running configuration, and of one that is being read.
        var sets: [KeySetAddress: FetchedKeySet] = [:]
        var isEnded = false
    }

    private let keys: KeyTable
    private let https: HTTPSCalls
    private let log: Logger
    private let wallClock: @Sendable () -> Int64
    /// Tests for people.
    private let tests: ProofCalls<SiteverifyCalls>
    /// Play Integrity.
    private let integrity: ProofCalls<IntegrityCalls>
    private let access: AccessTokens
    private let state = Mutex(State())

    /// - wallClock: milliseconds since 1970.
    init(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable,
        _ https: HTTPSCalls,
        _ log: Logger,
        _ wallClock: @escaping @Sendable () -> Int64
    ) {
        self.keys = keys
        self.https = https
        self.log = log
        self.wallClock = wallClock
        let (tests, integrity) = (configuration.siteverify, configuration.integrity)
        self.tests = ProofCalls("siteverify", tests, keys, https, log, wallClock)
        self.integrity = ProofCalls("integrity", integrity, keys, https, log, wallClock)
        access = AccessTokens(self.integrity) { wallClock() / 1_000 }
    }

    /// The checks of a configuration, in the order of its proofs. Sets of keys that are new begin
    /// to be fetched, from their copies on disk.
    func checkers(of configuration: GatewayConfiguration) -> [any TokenChecker] {
        configuration.proofs.map { settings in
            switch settings.kind {
            case .jwt(let jwt):
                let source: TokenCheck.Source =
                    switch jwt.keys {
                    case .set(let keys): .fixed(keys)
                    case .address(let address):
                        .fetched(set(address, settings.proof.name, configuration))
                    }
                return TokenCheck(TokenVerifier(jwt.terms), source, keys)
            case .siteverify(let siteverify):
                return SiteverifyCheck(settings: siteverify, calls: tests)
            case .integrity(let settings):
                return IntegrityCheck(
                    settings: settings,
                    signers: configuration.signers,
                    calls: integrity,
                    access: access
                )
            }
        }
    }

    /// A reload is about to serve this configuration, whose new services may be asked from then on.
    func serves(_ configuration: GatewayConfiguration) {
        tests.loaded(configuration.siteverify)
        integrity.loaded(configuration.integrity)
    }

    /// Replies to all requests that wait for a service that no call is made any more.
    func stopCalls(_ ended: @escaping @Sendable () -> Void) {
        tests.stop { [integrity] in integrity.stop(ended) }
    }

    /// The state of the calls to services, for operators.
    var callFacts: ProofCallFacts { tests.facts + integrity.facts }

    private func set(
        _ address: KeySetAddress,
        _ name: String,
        _ configuration: GatewayConfiguration
    ) -> FetchedKeySet {
        let path = KeptFiles.path(configuration)
        let wallClock = wallClock
        let (set, isNew) = state.withLock { state in
            if let set = state.sets[address] { return (set, false) }
            let set = FetchedKeySet(address, name: name, path: path, https, log) {
                wallClock() / 1_000
            }
            state.sets[address] = set
            return (set, !state.isEnded)
        }
        if isNew { set.start() }
        return set
    }

    /// A reload serves this configuration: other sets are no longer fetched.
    func loaded(_ configuration: GatewayConfiguration) {
        access.loaded(configuration.integrity)
        let used = Set(configuration.proofs.compactMap(\.keySetAddress))
        let unused = state.withLock { state in
            let unused = state.sets.filter { !used.contains($0.key) }
            for address in unused.keys { state.sets[address] = nil }
            return unused
        }
        for set in unused.values { set.end() }
    }

    /// The state of the fetched sets, for operators.
    var facts: [KeySetFacts] {
        state.withLock(\.sets).values.map(\.facts).sorted { $0.proof < $1.proof }
    }

    /// Makes no further call: the gateway ends.
    func end() {
        let sets = state.withLock { state in
            state.isEnded = true
            return state.sets
        }
        for set in sets.values { set.end() }
    }
}

extension GatewayConfiguration {
    /// The services of tests for people.
    var siteverify: [SiteverifySettings] {
        settings.proofs.compactMap {
            if case .siteverify(let settings) = $0.kind { settings } else { nil }
        }
    }

    /// Google's service, as each proof of Play Integrity asks it.
    var integrity: [IntegrityService] {
        settings.proofs.compactMap {
            if case .integrity(let settings) = $0.kind { settings.service } else { nil }
        }
    }

    /// The signing certificates that the policies of Android apps name, by package.
    fileprivate var signers: [String: Set<[UInt8]>] {
        let named = settings.apps.compactMap { app in
            app.android.map { (app.id, $0.settings.signers) }
        }
        return Dictionary(named) { $0.union($1) }
    }
}

extension ProofSettings {
    /// The address of its keys; `nil` where they are not fetched.
    fileprivate var keySetAddress: KeySetAddress? {
        switch kind {
        case .siteverify, .integrity: nil
        case .jwt(let jwt):
            if case .address(let address) = jwt.keys { address } else { nil }
        }
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

    private let verifier: TokenVerifier
    private let source: Source
    /// Remembers the tokens that are good once.
    private let store: KeyTable

    init(_ verifier: TokenVerifier, _ source: Source, _ store: KeyTable) {
        self.verifier = verifier
        self.source = source
        self.store = store
    }

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
        store.spend(SpentToken(use, end: verified.end)) { outcome in
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

/// Checks the tokens of one test for people: asks its service about them.
struct SiteverifyCheck: TokenChecker {
    /// Seconds for which the store remembers a token. The services take one for some minutes.
    private static let lifetime: Int64 = 3_600

    let settings: SiteverifySettings
    let calls: ProofCalls<SiteverifyCalls>

    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        let name = settings.name
        guard SiteverifyCall.isToken(token.text) else {
            return calls.known(.malformed, "malformed", name)
        }
        let client = TokenClient(nil, at: token.address)
        let shown = ProofCalls<SiteverifyCalls>.Shown(token.text, of: name, client)
        if let checking = calls.begin(shown, settings.calls.used) { return checking }
        let call = SiteverifyCall(
            proof: name,
            token: token.text,
            address: token.address,
            timeout: settings.calls.timeout
        )
        let end = token.now.seconds + Self.lifetime
        calls.send(call) { reply in
            let verdict = SiteverifyVerdict(reply, settings)
            calls.finish(shown, isSpent: verdict == .good)
            calls.count(verdict.word, name)
            guard verdict == .good else {
                calls.tell(verdict.word, name, next: verdict.next)
                return found(TokenFinding(verdict))
            }
            calls.spend(SpentToken(shown.digest, end: end), fresh: .good, found)
        }
        return .later
    }
}

extension TokenFinding {
    fileprivate init(_ verdict: SiteverifyVerdict) {
        self =
            switch verdict {
            case .good: .good
            case .failed: .unavailable
            case .refused(let refusal):
                switch refusal {
                case .invalid, .call, .otherKey, .browser, .unknownCode: .invalid
                case .expired: .expired
                case .used, .expiredOrUsed: .spent
                case .hostname, .action, .score, .noScore: .refused
                }
            }
    }
}

extension SiteverifyVerdict {
    /// The next step for the operator; `nil` where there is nothing to mend.
    var next: String? {
        switch self {
        case .good: nil
        case .refused(let refusal):
            switch refusal {
            case .call: "if it is so for all tokens, see url, site_key and action of the proof"
            case .noScore: "take out min_score and max_score: the key gives no score"
            case .unknownCode: "see what the service's documents say of new codes"
            case .invalid, .expired, .used, .expiredOrUsed, .browser, .otherKey, .hostname,
                .action, .score:
                nil
            }
        case .failed(let fault):
            fault.next(
                credential: "see secret_file of the proof: the service does not accept it",
                quota: "at the service"
            )
        }
    }
}
