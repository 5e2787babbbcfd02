public import Foundation

/// What happens in a session, for logs and metrics. No event holds a secret or an assertion.
public enum PortcullisEvent: Hashable, Sendable {
    /// The service made a key.
    case keyGenerated(keyID: String)
    /// The service was asked to attest a key. Each event is one call.
    case attestationRequested(keyID: String)
    /// The gateway has the key.
    case enrolled(keyID: String)
    /// No key is enrolled before a time.
    case enrolmentHeld(EnrolmentHold)
    /// A key was forgotten, because the gateway or the device refused it.
    case keyForgotten(keyID: String, reason: String)
    /// The service can't sign now. It is asked again at a time, for the same key and hash.
    case signingDelayed(until: Date)
    /// A session was opened.
    case sessionOpened
    /// The gateway refused a request.
    case refused(GatewayRefusal)
    /// A request is sent without proof.
    case unproven(Proof.Absence)
    /// A request whose route asks for a device token is sent without one.
    case withoutDeviceToken(DeviceTokenOutcome)
    /// It was learned from an answer what a route signs.
    case routeLearned(route: String)
    /// Another plan came from the gateway, and counts from now on.
    case planFetched
    /// What came as the plan is none. The one before stays.
    case planIgnored(SigningPlanError)
    /// The gateway gave no plan. It is asked again at a time.
    case planUnavailable(until: Date)
    /// The store could not be read or written.
    case storeFailed
    /// The store did not take a record, again and again, because it held another one each time. The
    /// enrolment is given up until the next request that needs a key. Something else writes into
    /// the store all the time, or ``EnrolmentStore/replace(_:with:)`` always returns `false`.
    case storeContended
}
