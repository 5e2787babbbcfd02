import ConfigurationReading
import Foundation
import Gateway
import KeyStore
import LoopbackKit
import Synchronization

/// A gateway in the tests' process whose wall clock the test steps, and whose store it may bring.
final class SteppedGateway: ServedGateway, Sendable {
    /// Gateways that have ended stay in memory: events of theirs may still be on their way.
    private static let all = Mutex<[GatewayServer]>([])

    let port: UInt16
    private let clock: Clock
    private let server: GatewayServer
    private let ended = DispatchSemaphore(value: 0)

    /// - `seconds`: what the clock shows, in Unix time.
    /// - `journal`: the store; without one, the database that the configuration names.
    init(_ scenario: Scenario, at seconds: Int64, journal: (any KeyJournal)? = nil) throws {
        let file = scenario.path("portcullis.yaml")
        let loaded = ConfigurationLoader.load(file)
        guard let configuration = loaded.configuration else {
            throw ChildProcess.Failure(description: loaded.problems.map(\.text).joined())
        }
        let clock = Clock(seconds * 1_000)
        self.clock = clock
        var surroundings = GatewayServer.Surroundings()
        surroundings.watchesSignals = false
        surroundings.wallClock = { clock.milliseconds.load(ordering: .relaxed) }
        if let journal { surroundings.openJournal = { _ in .success(journal) } }
        surroundings.exit = { [ended] _ in ended.signal() }
        server = try GatewayServer.run(configuration, file: file, surroundings: surroundings)
        guard let port = server.addresses.first?.split(separator: ":").last.flatMap({ UInt16($0) })
        else { throw ChildProcess.Failure(description: "no port") }
        self.port = port
        Self.all.withLock { [server] in $0.append(server) }
    }

    private final class Clock: Sendable {
        let milliseconds: Atomic<Int64>

        init(_ milliseconds: Int64) { self.milliseconds = Atomic(milliseconds) }
    }

    /// A client of the admin listener.
    func adminClient() throws -> HTTPClient {
        let text = server.adminAddress?.split(separator: ":").last
        guard let port = text.flatMap({ UInt16($0) }) else {
            throw ChildProcess.Failure(description: "no admin listener")
        }
        return HTTPClient(port: port)
    }

    /// Steps the clock; backwards for less than none.
    func step(hours: Int64) {
        clock.milliseconds.wrappingAdd(hours * 3_600_000, ordering: .relaxed)
    }

    func stop() {
        server.stop()
        _ = ended.wait(timeout: .now() + ChildProcess.patience)
    }
}
