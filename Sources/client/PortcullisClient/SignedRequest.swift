#if canImport(FoundationNetworking)
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A request that was signed to be sent by somebody else, once.
///
/// It belongs to the moment: a challenge lives for minutes, and the proof is good for one try. A
/// system that sends it again by itself, as background sessions do, is answered 401. Then
/// ``PortcullisSession/signAgain(_:after:)`` makes the next one.
public struct SignedRequest: Sendable {
    /// What to send, as it stands. Where it was made for a file, upload that file with it.
    public let request: URLRequest
    /// What it carries.
    public let proof: Proof
    /// Whether it carries a device token.
    public let deviceToken: DeviceTokenOutcome

    let canonical: CanonicalRequest
    let content: ReplayableContent
    let session: String?
    let machine: RequestMachine

    init(
        _ proven: ProvenRequest,
        request: URLRequest,
        canonical: CanonicalRequest,
        content: ReplayableContent,
        machine: RequestMachine
    ) {
        self.request = request
        proof = proven.proof
        deviceToken = proven.deviceToken
        session = proven.session
        (self.canonical, self.content, self.machine) = (canonical, content, machine)
    }
}
