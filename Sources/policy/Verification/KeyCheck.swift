package import AppAttest
import HTTPWire
package import KeyStore
package import Rules

/// Checks the key: whether it may be used at all, and whether the rule admits its app.
package struct KeyCheck {
    private let decider: Decider
    private let apps: [AppNumber: KnownApp]
    private let admissions: AppAdmissions

    init(_ decider: Decider, apps: [AppPolicy], rules: [Rule]) {
        self.decider = decider
        let known = apps.map { (decider.keys.number(ofApp: $0.id), KnownApp(policy: $0)) }
        self.apps = Dictionary(uniqueKeysWithValues: known)
        admissions = AppAdmissions(rules, self.apps)
    }

    /// The key, when it may be used at all and the rule admits its app.
    ///
    /// Where the store decides each use of a counter, it also refuses a revoked key. A session uses
    /// no counter.
    func find(_ proof: Proof, for rule: Rule, _ verdict: inout Verdict) -> (
        stored: StoredKey, app: KnownApp, isOutdated: Bool
    )? {
        let keyID = proof.keyID
        let stored: StoredKey
        var isOutdated = false
        switch proof.kind == .session ? decider.findUnasked(keyID) : decider.find(keyID) {
        case .unavailable:
            verdict.outcome = .failure(.store)
            return nil
        case .unknown:
            verdict.outcome = .refuse(.keyUnknown)
            return nil
        case .absent:
            verdict.outcome = .failure(.store)
            if let ticket = decider.lookUp(keyID) { verdict.pending = .key(ticket) }
            return nil
        case .known(let key): stored = key
        case .outdated(let key): (stored, isOutdated) = (key, true)
        }
        (verdict.environment, verdict.platform) = (stored.environment, stored.platform)
        verdict.context = stored.context
        guard !stored.isRevoked else {
            verdict.outcome = .refuse(.keyRevoked)
            return nil
        }
        guard let app = apps[stored.app] else {
            verdict.outcome = .refuse(.appMismatch)
            return nil
        }
        verdict.appID = app.policy.id
        // An app of one platform has no keys of the other, also where their ids are alike.
        guard stored.platform == app.policy.attestedBy,
            admissions.admits(stored.app, app.policy, rule: rule)
        else {
            verdict.outcome = .refuse(.appMismatch)
            return nil
        }
        // Neither platform's form is accepted for the other's key.
        guard proof.platform ?? stored.platform == stored.platform else {
            verdict.outcome = .refuse(.assertionMalformed)
            return nil
        }
        // The counters come from an older copy of the store, so only a challenge could tell this
        // request from one that was admitted before. The rule takes no challenge: the app enrols
        // again.
        guard stored.anchor == .held || rule.challenge != .none else {
            verdict.outcome = .refuse(.keyUnknown)
            return nil
        }
        return (stored, app, isOutdated)
    }

    /// The fault of a key that has signed a request whose content is still to come; `nil` for none.
    /// The store is not asked: it announces revocations.
    package func fault(of keyID: KeyID, rule: Rule) -> Verdict.Outcome? {
        let finding = decider.findUnasked(keyID)
        if let refusal = finding.refusal { return .refuse(Refusal(refusal)) }
        if case .known = finding { return nil }
        return rule.onError == .refuse ? .failure(.store) : nil
    }

    /// The store's decision about a request that waited for it. A key that was revoked or deleted
    /// meanwhile admits nothing: whoever has revoked it was told so. The store is not asked, since
    /// it announces revocations.
    package func late(_ decision: ConsumeDecision, of keyID: KeyID?) -> ConsumeDecision {
        guard decision == .admitted, let keyID, let refusal = decider.findUnasked(keyID).refusal
        else { return decision }
        return .refused(refusal)
    }

    /// Keeps a key in memory while a request that it has signed is under way.
    package func keep(_ keyID: KeyID) { decider.keys.touch(keyID) }

    static func admits(_ environment: KeyEnvironment, _ policy: AppPolicy) -> Bool {
        switch environment {
        case .production: policy.environments.contains(.production)
        case .development: policy.environments.contains(.development)
        case .test: policy.isTest
        }
    }

    /// Whether the key that a verdict names is enrolled here, and not revoked.
    ///
    /// A request that is refused before the key is looked up names the key too.
    package func isInstall(_ verdict: Verdict) -> Bool {
        guard let keyID = verdict.keyID else { return false }
        guard verdict.environment == nil else { return true }
        switch decider.find(keyID) {
        case .known(let key), .outdated(let key): return !key.isRevoked
        case .unknown, .unavailable, .absent: return false
        }
    }
}

/// A configured app.
///
/// A reference, so that a request carries it at the price of one count.
final class KnownApp: Sendable {
    let policy: AppPolicy

    init(policy: AppPolicy) { self.policy = policy }
}

/// The apps whose keys each rule admits, by number, computed once for a configuration.
struct AppAdmissions: Sendable {
    /// The rules by their numbers.
    private let rules: [Rule]
    private let admitted: [Set<AppNumber>]

    init(_ rules: [Rule], _ apps: [AppNumber: KnownApp]) {
        self.rules = rules
        // Most rules name no apps: all of them share one set.
        var known: [AppScope: Set<AppNumber>] = [:]
        admitted = rules.map { rule in
            if let set = known[rule.apps] { return set }
            let set = Set(apps.filter { rule.apps.admits($0.value.policy) }.keys)
            known[rule.apps] = set
            return set
        }
    }

    /// Whether the rule admits keys of the app. Allocates nothing.
    ///
    /// A request that waited during a reload has a rule of the old configuration. That rule is not
    /// in the table, so the function asks the rule itself.
    func admits(_ number: AppNumber, _ app: AppPolicy, rule: Rule) -> Bool {
        guard rules.indices.contains(rule.index), rules[rule.index] === rule else {
            return rule.apps.admits(app)
        }
        return admitted[rule.index].contains(number)
    }
}

extension AppPolicy {
    /// The app in the form that an attestation is checked against. A test authority's keys may
    /// state either environment: they are test keys in any case.
    var expected: ExpectedApp {
        ExpectedApp(
            id: id,
            environments: isTest ? Set(AttestationEnvironment.allCases) : environments,
            isMacOS: platform == .macos,
            builds: builds
        )
    }
}

extension KeyEnvironment {
    /// The environment that Apple's attestation names.
    init(_ environment: AttestationEnvironment) {
        switch environment {
        case .production: self = .production
        case .development: self = .development
        }
    }
}

extension KeyTable.Finding {
    /// Why a key that has signed may not be used any more, as far as this process knows; `nil` for
    /// a key that may, and where it can't be said.
    fileprivate var refusal: ConsumeRefusal? {
        switch self {
        case .unknown: .unknown
        case .known(let key) where key.isRevoked, .outdated(let key) where key.isRevoked: .revoked
        case .known, .outdated, .unavailable, .absent: nil
        }
    }
}
