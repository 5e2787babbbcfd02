import Foundation

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

/// A device token for one request.
struct DeviceTokenShowing: Sendable {
    let outcome: DeviceTokenOutcome
    /// What goes into the field.
    var text: String?
}
