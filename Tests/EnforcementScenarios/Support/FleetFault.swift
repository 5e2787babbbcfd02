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

    /// Lets it befall the fleet, and mends it when the load has gone on for a while.
    func befall(_ fleet: Fleet, _ load: FleetLoad) throws {
        let victim = Int.random(in: 0..<fleet.count)
        // Longer than the database may take for a statement.
        let longest = Double.random(in: 0.2...4)
        func goOn() { load.awaitAdmitted(50, seconds: longest) }
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
