import ClientKit
import Foundation
import LoopbackKit
import PortcullisClient
import PortcullisClientTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A gateway as a process, an origin behind it, and what an app is made of. All of it is gone after
/// ``end()``.
///
/// The gateway trusts the stand's ``authority``. It may end and come back: at the port that the
/// system chose for it first.
final class ClientStand {
    static let appID = "TEAM123456.com.example.shop"
    static let endpoints = "/.well-known/app-attest"
    /// The app in a process of its own.
    static let appProgram = ClientGateway.built("portcullis-app")

    static var isPossible: Bool { ClientGateway.program != nil && appProgram != nil }

    let folder: URL
    let authority: TestAuthority
    let origin: TestOrigin
    private(set) var clock: ShiftedClock
    private(set) var transport = ScriptedTransport(URLSessionTransport())
    /// The device.
    private(set) var service: ScriptedAttestationService
    /// Where the app keeps its record.
    var store: any EnrolmentStore = MemoryEnrolmentStore()
    let gateway: ClientGateway
    /// When the device came, for the origin; `nil` for the first one.
    private var beginning: TestOrigin.Moment?

    /// Starts origin and gateway.
    ///
    /// - `rules`: the list of rules, in YAML without indentation. Each that judges gets the app.
    /// - `app`: further settings of the app's entry, as `, receipt: required`.
    /// - `more`: further sections of the configuration.
    /// - `device`: what kind of device the keys are of.
    /// - `script`: what the origin does.
    init(
        rules: String = ClientStand.orders,
        app: String = "",
        more: String = "",
        device: SoftwareAttestationService.Device = .iPhone,
        clock: ShiftedClock = ShiftedClock(),
        script: @escaping TestOrigin.Script = TestOrigin.friendly
    ) throws {
        self.clock = clock
        folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-client-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        authority = try TestAuthority()
        let files = ["root.pem": authority.rootPEM, "authority.pem": authority.pem]
        for (name, text) in files {
            let file = folder.appending(path: name)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        origin = try TestOrigin(script: script)
        service = ScriptedAttestationService(
            try SoftwareAttestationService(
                appID: Self.appID,
                authority: authority,
                folder: folder.appending(path: "device"),
                device: device
            )
        )
        gateway = try ClientGateway(
            in: folder,
            Self.configuration(origin: origin.address, app: app, rules: rules, more: more)
        )
    }

    /// Puts another device, with another install of the app, before the gateway, at a time that
    /// stands still or not. What came of it so far is not told any more.
    func startOver(isFrozen: Bool = true) throws {
        beginning = origin.now
        clock = ShiftedClock(isFrozen: isFrozen)
        transport = ScriptedTransport(URLSessionTransport())
        store = MemoryEnrolmentStore()
        service = ScriptedAttestationService(
            try SoftwareAttestationService(
                appID: Self.appID,
                authority: authority,
                folder: folder.appending(path: "device-\(UUID().uuidString)")
            )
        )
    }

    /// Where challenges are asked for.
    static let challenges = endpoints + "/challenges"
    /// Where attestations are sent.
    static let keys = endpoints + "/keys"
    /// Where sessions are opened.
    static let sessions = endpoints + "/sessions"

    /// One rule that enforces all defaults, and one that asks for nothing.
    static let orders = """
        - { id: orders, match: { path: /orders/** }, mode: enforce, counter: { window: 64 } }
        - { id: open, match: { path: /open/** }, mode: off }
        """

    /// The same, and one that takes sessions.
    static let ordersAndChat = """
        \(orders)
        - { id: chat, match: { path: /chat/** }, mode: enforce, accept: [assertion, session] }
        """
    /// A target of the rule that takes assertions, and one of the rule that takes sessions, too.
    static let (order, chat) = ("/orders/1", "/chat/1")

    private static func configuration(
        origin: String,
        app: String,
        rules: String,
        more: String
    ) -> String {
        let indented = rules.split(separator: "\n").map { line in
            let mode = ["mode: enforce", "mode: observe"].first { line.contains($0) }
            guard let mode else { return "  \(line)" }
            return "  " + line.replacing(mode, with: "\(mode), apps: [\(appID)]")
        }
        return """
            listen: [{ address: "127.0.0.1:0" }]
            admin: { address: "127.0.0.1:0" }
            event_loops: 2
            origins: { shop: { servers: ["\(origin)"] } }
            apps: [{ id: \(appID), environments: [test], test_root: root.pem\(app) }]
            store: { sqlite: portcullis.db }
            default: { origin: shop, mode: off }
            timeouts: { drain_idle: 100ms }
            \(more)
            rules:
            \(indented.joined(separator: "\n"))

            """
    }

    func end() {
        gateway.kill()
        origin.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: The app

    /// A URL at the gateway.
    func url(_ target: String) throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(gateway.port)\(target)") else {
            throw URLError(.badURL)
        }
        return url
    }

    func request(_ method: String, _ target: String, _ content: String? = nil) throws -> URLRequest
    {
        var request = URLRequest(url: try url(target))
        request.httpMethod = method
        request.httpBody = content.map { Data($0.utf8) }
        return request
    }

    /// The app, started anew: a session on the same store and the same device.
    ///
    /// It takes for granted that a route signs everything, and has patience with busy machines,
    /// unless `change` says otherwise.
    func app(
        _ change: (inout PortcullisConfiguration) throws -> Void = { _ in }
    ) throws -> PortcullisSession {
        var configuration = PortcullisConfiguration(gateway: try url(""))
        configuration.defaultRequirement = SigningRequirement()
        configuration.routeMemory = .none
        configuration.clock = clock
        configuration.limits.proofWait = .seconds(30)
        configuration.limits.enrolmentWait = .seconds(30)
        configuration.limits.challengeWait = .seconds(30)
        configuration.limits.sessionWait = .seconds(30)
        // Delays in the middle of their ranges.
        configuration.random = { 0.5 }
        try change(&configuration)
        return PortcullisSession(
            configuration,
            service: service,
            store: store,
            transport: transport
        )
    }

    // MARK: What came of it

    /// The requests of the device that reached the origin, in the order of its connections.
    var requests: [WireRequest] {
        guard let beginning else { return origin.requests }
        return origin.connections(since: beginning).flatMap(\.requests)
    }

    /// The verdicts on the requests that reached the origin, in the order of its connections.
    var verdicts: [String] { told("Verdict") }

    /// What the origin was told about each request, in the order of its connections.
    ///
    /// - `name`: the field's, without `App-Attest-`.
    func told(_ name: String) -> [String] {
        requests.map { $0.head.value("App-Attest-\(name)") ?? "none" }
    }

    /// The statuses of the answers to calls of an endpoint; 0 for a lost one.
    func statuses(_ endpoint: String) -> [Int] {
        transport.exchanges(endpoint).map { $0.status ?? 0 }
    }

    /// Keys made and attestations requested so far.
    var cost: Cost {
        let counts = service.counts
        return Cost(keys: counts.keysMade, attestations: counts.attestationsRequested)
    }
}

/// What an app has cost: keys on the device, and calls of Apple.
struct Cost: Hashable, CustomStringConvertible {
    var keys: Int
    var attestations: Int

    init(keys: Int, attestations: Int) { (self.keys, self.attestations) = (keys, attestations) }

    var description: String { "\(keys) keys, \(attestations) attestations" }
}

extension AsyncStream<PortcullisEvent> {
    /// The reasons of all refusals, once the session was closed.
    func reasons() async -> [String] {
        await reduce(into: []) { reasons, event in
            if case .refused(let refusal) = event { reasons.append(refusal.reason) }
        }
    }
}

extension PortcullisSession {
    /// Sends a request and collects its answer.
    func send(_ request: URLRequest) async throws -> ProvenResponse {
        try await data(for: request).1
    }

    /// Sends many requests at once.
    func sendAtOnce(_ count: Int, _ request: URLRequest) async throws -> [ProvenResponse] {
        try await withThrowingTaskGroup(of: ProvenResponse.self) { group in
            for _ in 0..<count { group.addTask { try await self.send(request) } }
            var answers: [ProvenResponse] = []
            for try await answer in group { answers.append(answer) }
            return answers
        }
    }
}
