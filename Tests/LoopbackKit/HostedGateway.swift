import ConfigurationReading
import Foundation
package import Gateway
package import Parties
import Synchronization

/// A gateway inside the test's process, configured by a file as any other.
package final class HostedGateway: Sendable {
    /// Why none was started.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// Gateways that have ended stay in memory: events of theirs may still be on their way.
    private static let all = Mutex<[(server: GatewayServer, ending: Ending)]>([])

    /// The end of the process waits for them: libraries clean up there, and a gateway that still
    /// runs would use what is gone. Registered behind the libraries' own functions, so it runs
    /// before them.
    private static let waitAtExit: Void = { atexit { HostedGateway.awaitEnds() } }()

    package let server: GatewayServer
    /// The port of the first listener; 0 for a Unix socket.
    package let port: UInt16
    private let ending: Ending

    /// Reads a configuration and starts it.
    ///
    /// - `parties`: those whose proofs the configuration may name.
    /// - `change`: what differs in the surroundings, in which no signal is heeded and the process
    ///   is the tests'.
    /// - `whenEnded`: called once it has ended.
    package init(
        file: String,
        parties: [any ProofParty.Type] = ProofParties.standard,
        _ change: (inout GatewaySurroundings) -> Void = { _ in },
        whenEnded: @escaping @Sendable () -> Void = {}
    ) throws {
        let loaded = ConfigurationLoader.load(file, parties: parties)
        guard let configuration = loaded.configuration else {
            throw Failure(description: loaded.problems.map(\.text).joined(separator: "\n"))
        }
        let ending = Ending()
        self.ending = ending
        var surroundings = GatewaySurroundings()
        surroundings.watchesSignals = false
        surroundings.ownsProcess = false
        change(&surroundings)
        surroundings.exit = { status in
            whenEnded()
            ending.end(with: status)
        }
        server = try GatewayServer.run(configuration, file: file, surroundings: surroundings)
        port = Self.port(of: server.addresses.first)
        Self.waitAtExit
        Self.all.withLock { [server] in $0.append((server, ending)) }
    }

    /// The port of the last listener, which may be the first.
    package var lastPort: UInt16 { Self.port(of: server.addresses.last) }

    /// The port of the first admin listener; 0 without one.
    package var adminPort: UInt16 { Self.port(of: server.adminAddresses.first) }

    private static func port(of address: String?) -> UInt16 {
        address?.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
    }

    /// Lets it end by itself: a listener takes a quarter of a second to close, and there are
    /// hundreds of gateways.
    package func stop() {
        ending.begin()
        server.stop()
    }

    /// Whether it was told to end.
    package var isStopped: Bool { ending.isExpected }

    /// The status it has ended with; `nil` when it has not before the deadline.
    package func exitStatus() -> Int32? { ending.wait() }

    /// Waits for the ends of all that were told to end.
    package static func awaitEnds() {
        for (_, ending) in all.withLock({ $0 }) where ending.isExpected { _ = ending.wait() }
    }
}

/// The end of a gateway.
///
/// `@unchecked Sendable`: the values are touched under the condition.
private final class Ending: @unchecked Sendable {
    private let condition = NSCondition()
    private var status: Int32?
    private var hasBegun = false

    /// Whether the gateway was told to end.
    var isExpected: Bool { condition.withLock { hasBegun } }

    func begin() { condition.withLock { hasBegun = true } }

    func end(with status: Int32) {
        condition.withLock {
            self.status = status
            condition.broadcast()
        }
    }

    func wait() -> Int32? {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        return condition.withLock {
            while status == nil, condition.wait(until: deadline) {}
            return status
        }
    }
}
