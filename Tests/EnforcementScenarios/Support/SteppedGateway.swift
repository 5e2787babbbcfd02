import Foundation
import KeyStore
import LoopbackKit
import Synchronization

@testable import Gateway

/// A gateway in the tests' process whose wall clock the test steps, and whose store it may bring.
final class SteppedGateway: ServedGateway, Sendable {
    private let clock: Clock
    private let hosted: HostedGateway

    /// - `seconds`: what the clock shows, in Unix time, until it is stepped; `nil` for one that
    ///   goes.
    /// - `journal`: the store; without one, the database that the configuration names.
    init(
        _ scenario: Scenario,
        _ file: String = "portcullis.yaml",
        at seconds: Int64? = nil,
        journal: (any KeyJournal)? = nil
    ) throws {
        let clock = Clock(standsAt: seconds.map { $0 * 1_000 })
        self.clock = clock
        hosted = try HostedGateway(file: scenario.path(file)) { surroundings in
            let wallClock = surroundings.wallClock
            surroundings.wallClock = { clock.time(wallClock) }
            if let journal { surroundings.openJournal = { _ in .success(journal) } }
        }
    }

    private final class Clock: Sendable {
        private let standsAt: Int64?
        let steps = Atomic<Int64>(0)

        init(standsAt milliseconds: Int64?) { standsAt = milliseconds }

        func time(_ system: () -> Int64) -> Int64 {
            (standsAt ?? system()) + steps.load(ordering: .relaxed)
        }
    }

    var port: UInt16 { hosted.port }
    var clientPort: UInt16 { hosted.lastPort }

    /// A client of the admin listener.
    func adminClient() throws -> HTTPClient {
        guard hosted.adminPort > 0 else {
            throw ChildProcess.Failure(description: "no admin listener")
        }
        return HTTPClient(port: hosted.adminPort, asking: "localhost")
    }

    /// Steps the clock; backwards for less than none.
    func step(hours: Int64) {
        clock.steps.wrappingAdd(hours * 3_600_000, ordering: .relaxed)
    }

    /// Has it read its configuration again, as HUP does.
    func reload() {
        let server = hosted.server
        server.plane.perform { server.reloads.reload() }
    }

    /// Ends it, and waits for that.
    func stop() {
        hosted.stop()
        _ = hosted.exitStatus()
    }
}
