public import Foundation

/// Why no key is enrolled now, and until when none is tried.
public struct EnrolmentHold: Hashable, Sendable, Codable {
    /// What holds it.
    public enum Cause: Hashable, Sendable, Codable {
        /// Apple's service is not reached or busy. The same key is tried again.
        case appleUnavailable
        /// The device's service failed.
        case serviceFailed(AttestationServiceError)
        /// The gateway admits no more enrolments now, or not yet.
        case throttled
        /// The gateway was not reached or failed.
        case gatewayUnavailable
        /// Keys were lost or refused several times.
        case keysLost
        /// So many keys as a day allows were attested: ``PortcullisLimits/keysPerDay``.
        case dailyCap
        /// The context has no byte, or more than 256: ``PortcullisConfiguration/context``. No key
        /// is enrolled until ``PortcullisSession/reset(context:)`` brings another one.
        case contextUnfit
        /// The gateway does not admit this app or device, for this reason.
        case refused(reason: String)
    }

    /// What holds it.
    public let cause: Cause
    /// When the next try may begin.
    public let until: Date

    /// A hold until a time.
    public init(_ cause: Cause, until: Date) {
        (self.cause, self.until) = (cause, until)
    }
}
