import Foundation
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session with a gateway and a service in memory, and a clock that stands still.
struct Bench {
    let gateway = FakeGateway()
    let service: FakeService
    let store: MemoryEnrolmentStore
    let clock: ManualClock
    let session: PortcullisSession

    init(
        isSupported: Bool = true,
        store: MemoryEnrolmentStore = MemoryEnrolmentStore(),
        service: FakeService? = nil,
        clock: ManualClock = ManualClock(),
        _ change: (inout PortcullisConfiguration) -> Void = { _ in }
    ) throws {
        self.service = service ?? FakeService(isSupported: isSupported)
        self.store = store
        self.clock = clock
        session = try Self.session(self.service, store, clock, gateway, change)
    }

    static func session(
        _ service: any AttestationService,
        _ store: any EnrolmentStore,
        _ clock: ManualClock,
        _ gateway: FakeGateway,
        _ change: (inout PortcullisConfiguration) -> Void = { _ in }
    ) throws -> PortcullisSession {
        var configuration = PortcullisConfiguration(gateway: try url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.routeMemory = .none
        configuration.clock = clock
        configuration.random = { 0.5 }
        change(&configuration)
        return PortcullisSession(configuration, service: service, store: store, transport: gateway)
    }

    static func url(_ text: String) throws -> URL {
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        return url
    }

    static func request(_ path: String, _ method: String = "GET") throws -> URLRequest {
        var request = URLRequest(url: try url(FakeGateway.origin + path))
        request.httpMethod = method
        return request
    }

    /// How many keys were made, and how many attestations asked for.
    var counts: [Int] {
        get async { [await service.keysMade.count, await service.attestations.count] }
    }

    /// Verdicts in the order of the requests.
    var verdicts: [String] {
        get async { await gateway.seen.map(\.verdict) }
    }
}
