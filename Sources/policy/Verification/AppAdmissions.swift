import AppAttest
import KeyStore
import Rules

/// The apps whose keys each rule admits, by number, worked out once for a configuration.
struct AppAdmissions: Sendable {
    /// By their numbers.
    private let rules: [Rule]
    private let admitted: [Set<AppNumber>]

    init(_ rules: [Rule], _ apps: [AppNumber: AppPolicy]) {
        self.rules = rules
        // Most rules name no apps: all of these share one set.
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
    /// A request that waited while a reload happened has a rule of the configuration before: it is
    /// not in the table, and is asked itself.
    func admits(_ number: AppNumber, _ app: AppPolicy, rule: Rule) -> Bool {
        guard rules.indices.contains(rule.index), rules[rule.index] === rule else {
            return rule.apps.admits(app)
        }
        return admitted[rule.index].contains(number)
    }
}

extension AppPolicy {
    /// The app as an attestation is checked against it. A test authority's keys may state either
    /// environment: they are test keys all the same.
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
