/// Whether a request carried a device token, and why it carried none.
///
/// A rule with `device` asks for one beside the proof. Nothing is thrown where there is none: the
/// request is sent without, and the gateway's rule decides. One that enforces answers 400
/// `device-token-missing`.
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

/// A device token for one request.
struct DeviceTokenShowing: Sendable {
    let outcome: DeviceTokenOutcome
    /// What goes into the field.
    var text: String?
}
