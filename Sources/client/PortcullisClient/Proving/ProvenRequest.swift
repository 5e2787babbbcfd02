import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request that is ready to be sent, and what it carries.
struct ProvenRequest: Sendable {
    var request: URLRequest
    let proof: Proof
    /// Whether it carries a device token.
    var deviceToken = DeviceTokenOutcome.notAsked
    /// The session that it belongs to.
    var session: String?
    /// To be ended when the head of the answer has come.
    var lease: ProofLease?
}
