import ClientKit
import Foundation

/// Where the app ends as if it were killed.
enum DeathPlace: String {
    /// The device has made a key, and the app does not know it yet.
    case keyMade = "key-made"
    /// The gateway is asked for a challenge.
    case challengeAsked = "challenge-asked"
    /// Apple is asked, and does not know it yet.
    case attestationAsked = "attestation-asked"
    /// Apple has attested the key, and the app does not know it yet.
    case attestationMade = "attestation-made"
    /// The gateway is sent the attestation, and does not know it yet.
    case registrationAsked = "registration-asked"
    /// The gateway has the key, and the app does not know it yet.
    case registrationMade = "registration-made"
    /// The app knows that the key is enrolled.
    case enrolled

    /// Waits for the place.
    func arm(_ service: ScriptedAttestationService, _ transport: ScriptedTransport) {
        let die: @Sendable () -> Void = {
            PortcullisApp.report(service, "died")
            kill(getpid(), SIGKILL)
        }
        let endpoints = "/.well-known/app-attest"
        switch self {
        case .keyMade: service.next(.generateKey, .runAfter(die))
        case .challengeAsked: transport.next(endpoints + "/challenges", .run(die))
        case .attestationAsked: service.next(.attestKey, .run(die))
        case .attestationMade: service.next(.attestKey, .runAfter(die))
        case .registrationAsked: transport.next(endpoints + "/keys", .run(die))
        case .registrationMade: transport.next(endpoints + "/keys", .runAfter(die))
        case .enrolled: service.next(.generateAssertion, .run(die))
        }
    }
}
