import Foundation
import Glibc
import LoopbackKit

/// What befalls a fleet.
enum FleetFault: CaseIterable, Sendable {
    case gatewayKilled, gatewayPaused, clockStepped, cableSilent, cableCut
    case connectionsEnded, backendKilled, databaseCrashed, databasePaused

    /// What can befall a fleet that runs so.
    static func all(of arrangement: Fleet.Arrangement) -> [FleetFault] {
        allCases.filter { fault in
            switch fault {
            case .gatewayKilled, .gatewayPaused: arrangement != .skewedClocks
            case .clockStepped: arrangement == .skewedClocks
            default: true
            }
        }
    }

    /// Whether it takes the database from all gateways.
    private var isOfAll: Bool {
        switch self {
        case .connectionsEnded, .backendKilled, .databaseCrashed, .databasePaused: true
        case .gatewayKilled, .gatewayPaused, .clockStepped, .cableSilent, .cableCut: false
        }
    }

    /// Lets it befall the fleet, and mends it when the load has gone on for a while.
    func befall(_ fleet: Fleet, _ load: FleetLoad) throws {
        let victim = Int.random(in: 0..<fleet.count)
        // Longer than the database may take for a statement.
        let longest = Double.random(in: 0.2...3)
        func goOn() { load.awaitAdmitted(50, seconds: longest) }
        fleet.reach.lose(isOfAll ? Array(0..<fleet.count) : self == .clockStepped ? [] : [victim])
        defer { fleet.reach.mend() }
        switch self {
        case .gatewayKilled:
            try fleet.crash(victim)
            goOn()
            try fleet.start(victim)
        case .gatewayPaused:
            fleet.gateway(victim)?.child.signal(SIGSTOP)
            goOn()
            fleet.gateway(victim)?.child.signal(SIGCONT)
        case .clockStepped:
            // It stays so: clocks are mended by nobody here.
            fleet.stepClock(of: victim, hours: .random(in: -3...3))
            goOn()
        case .cableSilent, .cableCut:
            try fleet.cables[victim].turn(self == .cableCut ? .cut : .silent)
            goOn()
            try fleet.cables[victim].turn(.whole)
        case .connectionsEnded: try fleet.database.endConnections()
        case .backendKilled: try fleet.database.killOneBackend()
        case .databaseCrashed:
            try fleet.database.crash()
            goOn()
            try fleet.database.start()
        case .databasePaused:
            try fleet.database.pause()
            goOn()
            try fleet.database.resume()
        }
    }
}

/// Which gateways of a fleet can reach its database, as the test knows that brings the faults.
///
/// `@unchecked Sendable`: what changes is touched under `lock`.
final class FleetReach: @unchecked Sendable {
    /// The longest time after a fault in which a gateway finds the database again: a statement's
    /// timeout, a try to connect, and the pause before the next one.
    private static let recoveryMax = Duration.seconds(10)
    /// The time after a fault in which a gateway may still say what was true before it.
    private static let memory = Duration.seconds(2)

    private let lock = NSLock()
    private var lost: Set<Int> = []
    private var mendedAt: [Int: ContinuousClock.Instant] = [:]
    /// When a gateway has the database again.
    private var backAt: [Int: ContinuousClock.Instant] = [:]

    /// A fault is about to take the database from gateways.
    func lose(_ gateways: [Int]) { lock.withLock { lost.formUnion(gateways) } }

    /// The fault is over.
    func mend() {
        lock.withLock {
            for gateway in lost {
                mendedAt[gateway] = .now
                backAt[gateway] = .now + Self.recoveryMax
            }
            lost = []
        }
    }

    /// A gateway has said that the database answers it.
    ///
    /// - asked: before it was asked.
    func hears(_ gateway: Int, asked: ContinuousClock.Instant) {
        lock.withLock {
            guard let mended = mendedAt[gateway], mended + Self.memory < asked else { return }
            backAt[gateway] = min(backAt[gateway] ?? asked, asked)
        }
    }

    /// Whether a gateway has had the database from a moment until now.
    func isWhole(_ gateway: Int, since moment: ContinuousClock.Instant) -> Bool {
        lock.withLock { !lost.contains(gateway) && (backAt[gateway] ?? moment) <= moment }
    }
}
