import AppAttest
import KeyStore

extension KeyEnvironment {
    /// The environment that Apple's attestation names.
    init(_ environment: AttestationEnvironment) {
        switch environment {
        case .production: self = .production
        case .development: self = .development
        }
    }
}
