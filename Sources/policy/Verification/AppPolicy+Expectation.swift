import AppAttest
import Rules

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
