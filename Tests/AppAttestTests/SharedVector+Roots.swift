import Cryptography
import TestSupport

@testable import AppAttest

extension SharedVector {
    /// The authority of the vector's attestation: Apple's, or the one in the repository.
    var attestationRoot: X509Certificate {
        isSoftware ? SharedVectors.softwareRoot : AppleRoots.appAttestation
    }

    /// The authority of the vector's receipt: Apple's, or the one in the repository.
    var receiptRoot: X509Certificate {
        isSoftware ? SharedVectors.softwareRoot : AppleRoots.rootG3
    }
}
