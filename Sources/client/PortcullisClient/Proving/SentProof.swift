#if canImport(FoundationNetworking)
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// What a request carried to prove where it comes from.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum SentProof: Hashable, Sendable, Codable {
    case assertion(keyID: String)
    /// A signature with the secret of a session that this key opened.
    case session(keyID: String)
    /// Nothing, for this reason.
    case none(Absence)

    /// Why a request was sent without proof.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
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

extension SentProof {
    /// The key by which it was proven.
    var keyID: String? {
        switch self {
        case .assertion(let keyID), .session(let keyID): keyID
        case .none: nil
        }
    }
}

/// Whether a request carried a device token, and why it carried none.
///
/// A rule with `device` asks for one beside the proof. Nothing is thrown where there is none: the
/// request is sent without, and the gateway's rule decides. One that enforces answers 400
/// `device-token-missing`.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum DeviceTokenOutcome: Hashable, Sendable, Codable {
    /// The route asks for none, or the request carried no proof.
    case notAsked
    /// A new one went with the request.
    case sent
    /// The service made none. It is `featureUnsupported` where there is no service, or none that
    /// works on this device, and `serverUnavailable` also where the service took longer than
    /// ``PortcullisLimits/deviceTokenWait``.
    case failed(AttestationServiceError)
    /// It was kept back, since others could read and use it: the request goes over plain HTTP, and
    /// not to this machine.
    case keptBack
}

/// A request that is ready to be sent, and what it carries.
struct ProvenRequest: Sendable {
    var request: URLRequest
    let proof: SentProof
    /// Whether it carries a device token.
    var deviceToken = DeviceTokenOutcome.notAsked
    /// The session that it belongs to.
    var session: String?
    /// To be ended when the head of the answer has come.
    var lease: ProofLease?
}

/// The head of an answer, and what the request carried that it answers.
public struct ProvenResponse: Sendable {
    /// The head. Its URL is that of the last request, when redirects were followed.
    public let response: HTTPURLResponse
    /// What the last request carried.
    public let proof: SentProof
    /// Whether a device token went with it.
    public let deviceToken: DeviceTokenOutcome
    /// What the gateway refused, when the answer is its own: one with `App-Attest-Error`, or a 401
    /// with `WWW-Authenticate: AppAttest`. An origin can send neither.
    public let refusal: GatewayRefusal?
    /// Whether the origin may have run the request although it was refused: the proof came before,
    /// in a copy that something on the way has made, and the answer to that one is lost.
    ///
    /// Such a request is not sent again, as its method is not idempotent and it has no
    /// `Idempotency-Key`. Ask the server what became of it, or tell the user. With that field the
    /// origin tells the two apart, and the request is signed again by itself.
    public let mayHaveRun: Bool
    /// How often the request was sent, redirects and what did not count as one of
    /// ``PortcullisLimits/maximumAttempts`` included.
    public let attempts: Int

    /// The status code.
    public var statusCode: Int { response.statusCode }

    init(
        response: HTTPURLResponse,
        to request: ProvenRequest,
        refusal: GatewayRefusal?,
        mayHaveRun: Bool,
        attempts: Int
    ) {
        self.mayHaveRun = mayHaveRun
        self.response = response
        proof = request.proof
        deviceToken = request.deviceToken
        self.refusal = refusal
        self.attempts = attempts
    }
}
