import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each gateway of an app has a record of its own.
@Suite final class GatewayRecordTests {
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "portcullis-records-\(UUID().uuidString)")
    private let keychain = FakeKeychain()
    private let endpoints = "https://api.example.com/.well-known/app-attest"

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func gateway(_ text: String) throws -> RecordName {
        try #require(RecordName(Bench.url(text)))
    }

    private func record(_ gateway: String, _ phase: EnrolmentRecord.Phase) throws -> Data {
        var record = EnrolmentRecord(gateway: gateway)
        record.phase = phase
        record.attestations = [1_800_000_000]
        return try #require(record.bytes)
    }

    private func item(_ account: String) -> SecretItem {
        SecretItem(service: "s", account: account, group: nil)
    }

    private func marked(_ gateway: RecordName, mark: String = "install") -> MarkedRecord {
        MarkedRecord(
            items: keychain,
            item: item(gateway.text),
            mark: { mark }
        )
    }

    // MARK: Names

    @Test(arguments: [
        ("https://api.example.com/.well-known/app-attest", "api.example.com"),
        ("https://API.example.com:443/x", "api.example.com"),
        ("https://api.example.com:8443/x", "api.example.com:8443"),
        ("http://localhost/x", "localhost:80"),
    ])
    func `a record is named after the origin of the endpoints`(
        url: String,
        text: String
    ) throws {
        let name = try gateway(url)
        expectEqual(name.text, text)
        #expect(!name.fileText.contains(":"))
    }

    // MARK: Two gateways

    @Test func `two gateways on one store keep their keys, used in turn`() async throws {
        let store = FileEnrolmentStore(file: folder.appending(path: "record"))
        let service = FakeService()
        let clock = ManualClock()
        let places = ["https://api.example.com", "https://staging.example.com"]
        let gateways = places.map { _ in FakeGateway() }
        for _ in 0..<4 {
            for (place, gateway) in zip(places, gateways) {
                // A new process each time.
                let session = try Self.session(place, gateway, service, store, clock)
                let request = URLRequest(url: try Bench.url(place + "/a"))
                let (_, answer) = try await session.data(for: request)
                expectEqual(answer.statusCode, 200)
            }
        }
        await expectEqual(service.keysMade.count, 2)
        await expectEqual(service.attestations.count, 2)
    }

    private static func session(
        _ place: String,
        _ gateway: FakeGateway,
        _ service: FakeService,
        _ store: any EnrolmentStore,
        _ clock: ManualClock
    ) throws -> PortcullisSession {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(place))
        configuration.defaultRequirement = SigningRequirement(counter: .window(64))
        configuration.clock = clock
        return PortcullisSession(
            configuration,
            service: service,
            store: store,
            transport: MovedTransport(gateway: gateway, from: place)
        )
    }

    // MARK: Items

    @Test func `an item of an earlier install counts as none, and is replaced`() async throws {
        let own = marked(try gateway(endpoints))
        #expect(try await own.replace(nil, with: Data("a".utf8)))
        let next = marked(try gateway(endpoints), mark: "next")
        try await expectEqual(next.read(), nil)
        #expect(try await next.replace(nil, with: Data("b".utf8)))
        try await expectEqual(next.read(), Data("b".utf8))
        try await expectEqual(own.read(), nil)
        #expect(try await next.replace(Data("b".utf8), with: nil))
        try await expectEqual(next.read(), nil)
    }

    /// `errSecInteractionNotAllowed`.
    @Test func `before the first unlock no key is made`() async throws {
        let service = FakeService()
        let (gateway, clock) = (FakeGateway(), ManualClock())
        let old = try record(endpoints, .enrolled(keyID: "a"))
        let place = item("api.example.com")
        keychain.change { $0 = [place: Data("install\n".utf8) + old] }
        keychain.lock(true)
        let store = KeptRecord(record: marked(try self.gateway(endpoints)))
        let session = try Bench.session(service, store, clock, gateway)
        let (_, answer) = try await session.data(for: Bench.request("/a"))
        expectEqual(answer.proof, .none(.storeUnavailable))
        #expect(await service.keysMade.isEmpty)
        // Unlocked: the key that was enrolled is there.
        keychain.lock(false)
        try await expectEqual(store.read(), old)
    }

    @Test func `a group's item and its mark are shared by the same processes`() {
        expectEqual(KeychainSharing.none.accessGroup, nil)
        expectEqual(KeychainSharing.none.container, nil)
        expectEqual(KeychainSharing.appGroup("g").accessGroup, "g")
        expectEqual(KeychainSharing.appGroup("g").container, "g")
        expectEqual(KeychainSharing.keychainGroup("k", appGroup: "g").accessGroup, "k")
        expectEqual(KeychainSharing.keychainGroup("k", appGroup: "g").container, "g")
    }
}

/// A gateway in memory that stands at another origin than it knows.
private struct MovedTransport: HTTPTransport {
    let gateway: FakeGateway
    let from: String

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        var request = request
        let text = request.url?.absoluteString ?? ""
        request.url = try Bench.url(text.replacing(from, with: FakeGateway.origin))
        return try await gateway.send(request, content: content)
    }
}

/// A record in an item, as a store.
private struct KeptRecord: EnrolmentStore {
    let record: MarkedRecord

    func read() async throws -> Data? { try await record.read() }

    func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        try await self.record.replace(expected, with: record)
    }
}

/// Items in memory, which can be locked as the Keychain is before the first unlock.
private final class FakeKeychain: SecretItems {
    private struct Locked: Error {}

    private let items = Guarded<[SecretItem: Data]>([:])
    private let isLocked = Guarded(false)

    func lock(_ locked: Bool) { isLocked.withLock { $0 = locked } }
    func change(_ body: @Sendable (inout [SecretItem: Data]) -> Void) { items.withLock(body) }

    private func use<Result>(
        _ body: (inout [SecretItem: Data]) -> Result
    ) throws -> Result {
        // An item that is not there is known to be missing; one that is there can't be read.
        try items.withLock { items in
            if isLocked.withLock({ $0 }), !items.isEmpty { throw Locked() }
            return body(&items)
        }
    }

    func value(of item: SecretItem) throws -> Data? {
        try items.withLock { items in
            guard let value = items[item] else { return nil }
            if isLocked.withLock({ $0 }) { throw Locked() }
            return value
        }
    }

    func add(_ value: Data, as item: SecretItem) throws -> Bool {
        try use { items in
            guard items[item] == nil else { return false }
            items[item] = value
            return true
        }
    }

    func update(_ item: SecretItem, holding value: Data, to new: Data) throws -> Bool {
        try use { items in
            guard items[item] == value else { return false }
            items[item] = new
            return true
        }
    }

    func delete(_ item: SecretItem, holding value: Data) throws -> Bool {
        try use { items in
            guard items[item] == value else { return false }
            items[item] = nil
            return true
        }
    }
}
