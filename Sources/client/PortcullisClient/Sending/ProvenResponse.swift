#if canImport(FoundationNetworking)
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// The head of an answer, and what the request carried that it answers.
public struct ProvenResponse: Sendable {
    /// The head. Its URL is that of the last request, when redirects were followed.
    public let response: HTTPURLResponse
    /// What the last request carried.
    public let proof: Proof
    /// Whether a device token went with it.
    public let deviceToken: DeviceTokenOutcome
    /// What the gateway refused, when the answer is its own: one with `App-Attest-Error`, or a 401
    /// with `WWW-Authenticate: AppAttest`. An origin can send neither.
    public let refusal: GatewayRefusal?
    /// How often the request was sent, redirects and what did not count as one of
    /// ``PortcullisLimits/maximumAttempts`` included.
    public let attempts: Int

    /// The name of ``attempts`` before version 1.
    @available(*, deprecated, renamed: "attempts")
    public var tries: Int { attempts }

    /// The status code.
    public var statusCode: Int { response.statusCode }

    init(
        response: HTTPURLResponse,
        to request: ProvenRequest,
        refusal: GatewayRefusal?,
        attempts: Int
    ) {
        self.response = response
        proof = request.proof
        deviceToken = request.deviceToken
        self.refusal = refusal
        self.attempts = attempts
    }
}
