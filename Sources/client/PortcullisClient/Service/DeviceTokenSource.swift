public import Foundation

/// Has a new device token made for each request that needs one, within a time.
actor DeviceTokenSource {
    typealias Made = Result<Data, AttestationServiceError>

    private let service: (any DeviceTokenService)?
    private let clock: any ClientClock
    /// Calls of the service that have not ended. One that never ends keeps its place.
    private var callCount = 0
    /// Requests that wait for a place, in the order of asking.
    private var waiting: [SharedWork<Void>] = []

    /// The most calls at a time.
    static let callsMax = 8
    /// What a gateway reads: 8192 characters of base64.
    private static let bytesMax = 6144

    init(_ configuration: PortcullisConfiguration) {
        service = configuration.deviceTokens
        clock = configuration.clock
    }

    /// A new token. A service that takes too long counts as `serverUnavailable`, and what it still
    /// brings is dropped.
    func token(within seconds: Double) async -> Made {
        guard let service, service.isSupported else { return .failure(.featureUnsupported) }
        let time = clock.now.addingTimeInterval(seconds)
        guard await hasPlace(until: time) else { return .failure(.serverUnavailable) }
        let work = SharedWork<Made>()
        Task {
            do throws(AttestationServiceError) {
                let token = try await service.generateToken()
                let isFit = (1...Self.bytesMax).contains(token.count)
                work.end(with: isFit ? .success(token) : .failure(.unknownSystemFailure))
            } catch {
                work.end(with: .failure(error))
            }
            callEnded()
        }
        return await work.value(until: time, by: clock) ?? .failure(.serverUnavailable)
    }

    /// Waits for one of the places for calls.
    private func hasPlace(until time: Date) async -> Bool {
        guard callCount >= Self.callsMax else {
            callCount += 1
            return true
        }
        let place = SharedWork<Void>()
        waiting.append(place)
        if await place.value(until: time, by: clock) != nil { return true }
        waiting.removeAll { $0 === place }
        // It came in the same moment as the end of the time.
        if place.hasEnded { callEnded() }
        return false
    }

    /// Gives a place to the next one who waits.
    private func callEnded() {
        guard !waiting.isEmpty else {
            callCount -= 1
            return
        }
        waiting.removeFirst().end(with: ())
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

/// A device token for one request.
struct DeviceTokenShowing: Sendable {
    let outcome: DeviceTokenOutcome
    /// What goes into the field.
    var text: String?
}

/// What makes device tokens: the device, or software in its place.
///
/// A device token names the device to Apple's DeviceCheck, which keeps two bits for it, also across
/// reinstalls. A gateway's rule with `device` asks Apple about the token. The call is that of
/// Apple's `DCDevice`, and so is what it may throw. Use `DeviceCheckService` on devices.
/// Simulators, tests and Linux bring a service of their own.
///
/// ``PortcullisSession`` asks for a new token for each request to such a route, and for each try,
/// since a token is good once. It keeps none.
public protocol DeviceTokenService: Sendable {
    /// Whether this device and this process can make tokens.
    var isSupported: Bool { get }

    /// Makes a new token.
    ///
    /// - Returns: the token, opaque to all but Apple; 1 to 6144 bytes.
    func generateToken() async throws(AttestationServiceError) -> Data
}

#if canImport(DeviceCheck)
    import DeviceCheck

    /// The device's own service, Apple's DeviceCheck.
    public struct DeviceCheckService: DeviceTokenService {
        /// The service of this device.
        public init() {}

        /// Whether this device can make tokens. The Simulator can't.
        public var isSupported: Bool { DCDevice.current.isSupported }

        /// Makes a new token.
        public func generateToken() async throws(AttestationServiceError) -> Data {
            do {
                return try await DCDevice.current.generateToken()
            } catch {
                throw AttestationServiceError(translating: error)
            }
        }
    }
#endif
