import ConfigurationReading
import Foundation
import Gateway
import Lanes
import LoopbackKit
import Synchronization
import TLSSession

/// A gateway inside the test's process, configured by a file as any other.
final class TestGateway: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    /// Gateways that have ended stay in memory: events of theirs may still be on their way.
    private static let all = Mutex<[(server: GatewayServer, ending: Ending)]>([])

    let folder: String
    /// The port of the first listener; 0 for a Unix socket.
    let port: UInt16
    let server: GatewayServer
    private let ending: Ending

    /// Writes a configuration and starts it. `listen` are the members of the listener,
    /// `originOptions` further members of each origin behind a comma, `more` further sections of
    /// the file; `watchesSignals` says whether signals are heeded; `lookUp` takes the place of the
    /// system's resolver, which is asked again as `lookUpPace` says.
    init(
        _ origins: [(name: String, servers: [String])],
        listen: String = "address: 127.0.0.1:0",
        fallback: String? = nil,
        lanes: Int = 1,
        watchesSignals: Bool = false,
        originOptions: String = "",
        log: String = "{ access: off, level: error }",
        more: String = "",
        lookUpPace: LookUpPace = LookUpPace(),
        lookUp: (@Sendable (String, UInt16) -> [SocketAddress])? = nil
    ) throws {
        folder = try TemporaryFolder.make()
        let file = folder + "/portcullis.yaml"
        let text = Self.text(
            origins,
            listen: listen,
            fallback: fallback,
            lanes: lanes,
            originOptions: originOptions,
            log: log,
            more: more
        )
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let loaded = ConfigurationLoader.load(file)
        guard let configuration = loaded.configuration else {
            throw Failure(description: loaded.problems.map(\.text).joined(separator: "\n"))
        }
        let ending = Ending(folder: folder)
        self.ending = ending
        var surroundings = GatewayServer.Surroundings()
        surroundings.watchesSignals = watchesSignals
        surroundings.ownsProcess = false
        surroundings.lookUpPace = lookUpPace
        if let lookUp { surroundings.lookUp = lookUp }
        surroundings.exit = { ending.status = $0 }
        server = try GatewayServer.run(configuration, file: file, surroundings: surroundings)
        port = server.addresses.first?.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
        Self.all.withLock { [server] in $0.append((server, ending)) }
    }

    /// In front of one origin, which takes everything unverified.
    convenience init(_ origin: TestOrigin, more: String = "") throws {
        try self.init([("shop", [origin.address])], more: more)
    }

    static func text(
        _ origins: [(name: String, servers: [String])],
        listen: String,
        fallback: String? = nil,
        lanes: Int = 1,
        originOptions: String = "",
        log: String = "{ access: off, level: error }",
        more: String = ""
    ) -> String {
        let lines = origins.map {
            "  \($0.name): { servers: [\($0.servers.joined(separator: ", "))]\(originOptions) }"
        }
        return """
            listen:
              - { \(listen) }
            lanes: \(lanes)
            origins:
            \(lines.joined(separator: "\n"))
            log: \(log)
            default: \(fallback ?? "{ origin: \(origins[0].name), mode: off }")
            \(more)

            """
    }

    /// A new connection to it.
    func connect() throws -> Wire { try Wire(port: port) }

    /// One request on a connection of its own, and its final response.
    func ask(_ octets: String, method: String = "GET") throws -> WireResponse {
        let client = try connect()
        try client.send(octets)
        return try client.readFinalResponse(to: method)
    }

    /// Begins to end it.
    func beginStop() {
        ending.begin()
        server.stop()
    }

    /// The status it has ended with; `nil` when it has not before the deadline.
    func exitStatus() -> Int32? { ending.wait() }

    /// Lets it end by itself: a listener takes a quarter of a second to close, and there are
    /// hundreds of gateways.
    func stop() { beginStop() }

    /// Waits for the ends of all that were told to end.
    static func awaitEnds() {
        for (_, ending) in all.withLock({ $0 }) where ending.isExpected { _ = ending.wait() }
    }

    deinit {
        // One that was told to end removes it then: it may still write there.
        if !ending.isExpected { ending.removeFolder() }
    }
}

/// Waits for the gateway's end, and removes its folder then.
///
/// `@unchecked Sendable`: the value is touched under the condition.
private final class Ending: @unchecked Sendable {
    private let condition = NSCondition()
    private let folder: String
    private var value: Int32?
    private var hasBegun = false

    init(folder: String) { self.folder = folder }

    /// Whether the gateway was told to end.
    var isExpected: Bool { condition.withLock { hasBegun } }

    func begin() { condition.withLock { hasBegun = true } }

    func removeFolder() { try? FileManager.default.removeItem(atPath: folder) }

    var status: Int32? {
        get { condition.withLock { value } }
        set {
            removeFolder()
            condition.withLock {
                value = newValue
                condition.broadcast()
            }
        }
    }

    func wait() -> Int32? {
        let deadline = Date(timeIntervalSinceNow: Double(Wire.patienceMilliseconds) / 1000)
        return condition.withLock {
            while value == nil, condition.wait(until: deadline) {}
            return value
        }
    }
}

enum TemporaryFolder {
    /// A new folder with a short path, as Unix sockets want.
    static func make() throws -> String {
        let path = NSTemporaryDirectory() + "pc-\(UUID().uuidString.prefix(13))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }
}
