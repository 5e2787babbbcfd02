package import AppAttest
import HTTPWire
import KeyStore
package import Rules

/// Checks the key: whether it may be used at all, and whether the rule admits its app.
package struct KeyCheck {
    let keys: KeyTable
    private let apps: [AppNumber: AppPolicy]
    private let admissions: AppAdmissions

    init(_ keys: KeyTable, _ apps: [AppPolicy], _ rules: [Rule]) {
        self.keys = keys
        self.apps = Dictionary(
            uniqueKeysWithValues: apps.map { (keys.number(ofApp: $0.id), $0) }
        )
        admissions = AppAdmissions(rules, self.apps)
    }

    /// The key, when it may be used at all and the rule admits its app.
    ///
    /// Where the store decides each use of a counter, it also refuses a revoked key. A session uses
    /// no counter.
    func find(_ proof: Proof, _ rule: Rule, _ ruling: inout Ruling) -> (
        stored: StoredKey, app: AppPolicy, isOutdated: Bool
    )? {
        let keyID = proof.keyID
        let stored: StoredKey
        var isOutdated = false
        switch proof.kind == .session ? keys.findUnasked(keyID) : keys.find(keyID) {
        case .unavailable:
            ruling.verdict = .failure(.store)
            return nil
        case .unknown:
            ruling.verdict = .refuse(.keyUnknown)
            return nil
        case .absent:
            ruling.verdict = .failure(.store)
            if let ticket = keys.lookUp(keyID) { ruling.pending = .key(ticket) }
            return nil
        case .known(let key): stored = key
        case .outdated(let key): (stored, isOutdated) = (key, true)
        }
        (ruling.environment, ruling.platform) = (stored.environment, stored.platform)
        ruling.context = stored.context
        guard !stored.isRevoked else {
            ruling.verdict = .refuse(.keyRevoked)
            return nil
        }
        guard let app = apps[stored.app] else {
            ruling.verdict = .refuse(.appMismatch)
            return nil
        }
        ruling.appID = app.id
        // An app of one platform has no keys of the other, also where their ids are alike.
        guard stored.platform == app.attestedBy, admissions.admits(stored.app, app, rule: rule)
        else {
            ruling.verdict = .refuse(.appMismatch)
            return nil
        }
        // Neither platform's form is accepted for the other's key.
        guard proof.platform ?? stored.platform == stored.platform else {
            ruling.verdict = .refuse(.assertionMalformed)
            return nil
        }
        // The counters come from an older copy of the store, so only a challenge could tell this
        // request from one that was admitted before. The rule takes no challenge: the app enrols
        // again.
        guard stored.anchor == .held || rule.challenge != .none else {
            ruling.verdict = .refuse(.keyUnknown)
            return nil
        }
        return (stored, app, isOutdated)
    }

    /// The fault of a key that has signed a request whose content is still to come; `nil` for none.
    /// The store is not asked: it announces revocations.
    package func fault(of keyID: KeyID, rule: Rule) -> Verdict? {
        switch keys.findUnasked(keyID) {
        case .unknown: return .refuse(.keyUnknown)
        case .known(let key) where key.isRevoked, .outdated(let key) where key.isRevoked:
            return .refuse(.keyRevoked)
        case .known: return nil
        case .outdated, .unavailable, .absent:
            return rule.onError == .refuse ? .failure(.store) : nil
        }
    }

    /// Keeps a key in memory while a request that it has signed is under way.
    package func keep(_ keyID: KeyID) { keys.touch(keyID) }

    static func admits(_ environment: KeyEnvironment, _ policy: AppPolicy) -> Bool {
        switch environment {
        case .production: policy.environments.contains(.production)
        case .development: policy.environments.contains(.development)
        case .test: policy.isTest
        }
    }

    /// Whether the key that a ruling names is enrolled here, and not revoked.
    ///
    /// A request that is refused before the key is looked up names the key too.
    package func isInstall(_ ruling: Ruling) -> Bool {
        guard let keyID = ruling.keyID else { return false }
        guard ruling.environment == nil else { return true }
        switch keys.find(keyID) {
        case .known(let key), .outdated(let key): return !key.isRevoked
        case .unknown, .unavailable, .absent: return false
        }
    }
}
