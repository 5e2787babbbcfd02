import AppAttest
import KeyStore
import Rules

/// The apps whose keys each rule admits, by number, computed once for a configuration.
struct AppAdmissions: Sendable {
    /// The rules by their numbers.
    private let rules: [Rule]
    private let admitted: [Set<AppNumber>]

    init(_ rules: [Rule], _ apps: [AppNumber: AppPolicy]) {
        self.rules = rules
        // Most rules name no apps: all of them share one set.
        var known: [AppScope: Set<AppNumber>] = [:]
        admitted = rules.map { rule in
            if let set = known[rule.apps] { return set }
            let set = Set(apps.filter { rule.apps.admits($0.value) }.keys)
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
