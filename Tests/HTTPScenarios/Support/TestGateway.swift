import EventLoops
import Foundation
import Gateway
import LoopbackKit

/// A gateway inside the test's process, in a folder of its own.
final class TestGateway: Sendable {
    let folder: String
    private let hosted: HostedGateway

    /// Writes a configuration and starts it. `listen` are the members of the listener,
    /// `originOptions` further members of each origin behind a comma, `more` further sections of
    /// the file; `watchesSignals` says whether signals are heeded; `lookUp` takes the place of the
    /// system's resolver, which is asked again as `lookUpPace` says; `supervisor` is told how
    /// it stands.
    init(
        _ origins: [(name: String, servers: [String])],
        listen: String = "address: 127.0.0.1:0",
        fallback: String? = nil,
        loops: Int = 1,
        watchesSignals: Bool = false,
        originOptions: String = "",
        log: String = "{ access: off, level: error }",
        more: String = "",
        lookUpPace: LookUpPace = LookUpPace(),
        certificatePace: Duration = .seconds(5),
        supervisor: Supervisor? = nil,
        lookUp: (@Sendable (String, UInt16) -> [SocketAddress])? = nil,
        wallClock: (@Sendable () -> Int64)? = nil
    ) throws {
        let folder = try TemporaryFolder.make()
        self.folder = folder
        let file = folder + "/portcullis.yaml"
        let text = Self.text(
            origins,
            listen: listen,
            fallback: fallback,
            loops: loops,
            originOptions: originOptions,
            log: log,
            more: more
        )
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let change: (inout GatewaySurroundings) -> Void = { surroundings in
            surroundings.watchesSignals = watchesSignals
            surroundings.lookUpPace = lookUpPace
            surroundings.certificatePace = certificatePace
            surroundings.supervisor = supervisor
            if let wallClock { surroundings.wallClock = wallClock }
            if let lookUp { surroundings.lookUp = lookUp }
        }
        hosted = try HostedGateway(file: file, change) { TemporaryFolder.remove(folder) }
    }

    /// In front of one origin, which takes everything unverified.
    convenience init(_ origin: TestOrigin, more: String = "") throws {
        try self.init([("shop", [origin.address])], more: more)
    }

    static func text(
        _ origins: [(name: String, servers: [String])],
        listen: String,
        fallback: String? = nil,
        loops: Int = 1,
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
            event_loops: \(loops)
            origins:
            \(lines.joined(separator: "\n"))
            log: \(log)
            default: \(fallback ?? "{ origin: \(origins[0].name), mode: off }")
            \(more)

            """
    }

    var server: GatewayServer { hosted.server }

    /// The port of the admin listener; 0 without one.
    var adminPort: UInt16 { hosted.adminPort }

    /// The port of the first listener; 0 for a Unix socket.
    var port: UInt16 { hosted.port }

    /// A new connection to it.
    func connect() throws -> Wire { try Wire(port: port) }

    /// One request on a connection of its own, and its final response.
    func ask(_ bytes: String, method: String = "GET") throws -> WireResponse {
        let client = try connect()
        try client.send(bytes)
        return try client.readFinalResponse(to: method)
    }

    /// A page of the admin listener, which the configuration must name.
    func askOperators(_ path: String) throws -> WireResponse {
        let operators = try Wire(port: hosted.adminPort)
        try operators.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return try operators.readResponse()
    }

    /// Begins to end it.
    func beginStop() { hosted.stop() }

    /// The status it has ended with; `nil` when it has not before the deadline.
    func exitStatus() -> Int32? { hosted.exitStatus() }

    /// Lets it end by itself: waiting would take a quarter of a second for each test.
    func stop() { beginStop() }

    deinit {
        // One that was told to end removes it then: it may still write there.
        if !hosted.isStopped { TemporaryFolder.remove(folder) }
    }
}

enum TemporaryFolder {
    /// A new folder with a short path, as Unix sockets want.
    static func make() throws -> String {
        let path = NSTemporaryDirectory() + "pc-\(UUID().uuidString.prefix(13))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }
}
