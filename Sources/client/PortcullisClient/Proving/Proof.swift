/// What a request carried to prove where it comes from.
public enum Proof: Hashable, Sendable, Codable {
    /// An assertion by this key.
    case assertion(keyID: String)
    /// A signature with the secret of a session that this key opened.
    case session(keyID: String)
    /// Nothing, for this reason.
    case none(Absence)

    /// Why a request was sent without proof.
    public enum Absence: Hashable, Sendable, Codable {
        /// The route asks for none.
        case notAsked
        /// The address is none of the gateway's. A proof is never sent there.
        case otherOrigin
        /// Neither plan nor answers say yet what the route signs.
        case routeUnknown
        /// This device or process can't attest. The request says so in `App-Attest-Unsupported`.
        case unsupported
        /// The service failed to sign, also when it was asked again, or took too long. The request
        /// says so in `App-Attest-Unsupported`.
        case serviceFailed(AttestationServiceError)
        /// The key is being enrolled, and that takes longer than a request waits. A request waits
        /// not at all where the gateway said that the route's rule only observes. Where the device
        /// has failed twice, the request says so in `App-Attest-Unsupported`.
        case enrolling
        /// No enrolment is tried before a time. Where the device has failed twice, or has failed
        /// and that time is far off, the request says so in `App-Attest-Unsupported`.
        case enrolmentHeld(EnrolmentHold)
        /// The gateway gave no challenge in time.
        case challengeUnavailable
        /// The record about the key can't be read or written now.
        case storeUnavailable
        /// The request can't be signed as the route asks.
        case requestUnfit
        /// The session was closed: ``PortcullisSession/close()``.
        case closed
    }
}
