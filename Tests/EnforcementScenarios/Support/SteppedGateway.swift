import Foundation
import KeyStore
import LoopbackKit
import Synchronization

@testable import Gateway

/// A gateway in the tests' process whose wall clock the test steps, and whose store it may bring.
final class SteppedGateway: ServedGateway, Sendable {
    private let clock: Clock
    private let hosted: HostedGateway

    /// - `seconds`: what the clock shows, in Unix time.
    /// - `journal`: the store; without one, the database that the configuration names.
    init(_ scenario: Scenario, at seconds: Int64, journal: (any KeyJournal)? = nil) throws {
        let clock = Clock(seconds * 1_000)
        self.clock = clock
        hosted = try HostedGateway(file: scenario.path("portcullis.yaml")) { surroundings in
            surroundings.wallClock = { clock.milliseconds.load(ordering: .relaxed) }
            if let journal { surroundings.openJournal = { _ in .success(journal) } }
        }
    }

    private final class Clock: Sendable {
        let milliseconds: Atomic<Int64>

        init(_ milliseconds: Int64) { self.milliseconds = Atomic(milliseconds) }
    }

    var port: UInt16 { hosted.port }
    var clientPort: UInt16 { hosted.lastPort }

    /// A client of the admin listener.
    func adminClient() throws -> HTTPClient {
        guard hosted.adminPort > 0 else {
            throw ChildProcess.Failure(description: "no admin listener")
        }
        return HTTPClient(port: hosted.adminPort)
    }

    /// Steps the clock; backwards for less than none.
    func step(hours: Int64) {
        clock.milliseconds.wrappingAdd(hours * 3_600_000, ordering: .relaxed)
    }

    /// Has it read its configuration again, as HUP does.
    func reload() {
        let server = hosted.server
        server.control.async { server.reload() }
    }

    /// Ends it, and waits for that.
    func stop() {
        hosted.stop()
        _ = hosted.exitStatus()
    }
}
