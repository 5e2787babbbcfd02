import AppAttest
import Expectations
import Foundation
import KeyStore
import TestSupport
import Testing

/// The promises of `Sources/docs/promises.md` on the real code, with everything that may fail
/// failing. `Sources/docs/proof.md` says what the models show beside it.
@Suite struct SimulationTests {
    /// A store, and what runs on it.
    enum World: String, CaseIterable {
        /// One gateway with its own store, which upgrades.
        case one
        /// Three gateways on a store that decides.
        case fleet
        /// One gateway on SQLite's files.
        case files

        /// Of how many runs of the others this world has one: its commits reach a file system.
        var share: UInt64 { self == .files ? 50 : 1 }

        func plan(_ mutation: Simulation.Mutation? = nil) -> Simulation.Plan {
            var plan = Simulation.Plan()
            plan.mutation = mutation
            if self == .fleet { plan.gateways = 3 }
            // Two processes of one program can't share a lease of SQLite's files.
            plan.upgrades = self == .one
            return plan
        }

        func lab() throws -> any StoreLab {
            switch self {
            case .one: MemoryLab()
            case .fleet: MemoryLab(DecidingJournal())
            case .files: try SimulatedDisk()
            }
        }
    }

    private static let environment = ProcessInfo.processInfo.environment

    /// The seeds of this run: one with `PORTCULLIS_SEED`, as many as `PORTCULLIS_SEEDS` says, or as
    /// many as take some seconds.
    private static func seeds(_ world: World) -> ClosedRange<UInt64> {
        if let seed = environment["PORTCULLIS_SEED"].flatMap(UInt64.init) { return seed...seed }
        let count = environment["PORTCULLIS_SEEDS"].flatMap(UInt64.init) ?? 1_000
        return 1...max(count / world.share, 1)
    }

    @Test(arguments: World.allCases)
    func `no promise breaks, whatever fails when`(world: World) throws {
        var (executed, refused, starts, handOvers) = (0, 0, 0, 0)
        for seed in Self.seeds(world) {
            let simulation = try Simulation(seed: seed, world.plan(), on: world.lab())
            do {
                try simulation.run()
            } catch {
                let trace = simulation.trace.joined(separator: "\n")
                Issue.record(
                    """
                    \(error)
                    again: PORTCULLIS_SEED=\(seed) deploy/test --filter SimulationTests
                    \(trace)
                    """
                )
                return
            }
            executed += simulation.ledger.executed.count
            refused += simulation.ledger.refusedCount
            starts += simulation.startCount
            handOvers += simulation.handOverCount
        }
        let count = Int(clamping: Self.seeds(world).count)
        // A world in which nothing is admitted keeps every promise.
        #expect(executed > 10 * count, "\(executed) requests executed in \(count) runs")
        #expect(refused > 10 * count, "\(refused) requests refused in \(count) runs")
        #expect(starts > 2 * count, "\(starts) starts in \(count) runs")
        #expect(world != .one || handOvers > count / 2, "\(handOvers) upgrades in \(count) runs")
    }

    @Test(arguments: World.allCases)
    func `a seed plays the same run again`(world: World) throws {
        for seed in UInt64(1)...5 {
            let traces = try (0..<2).map { _ in
                let simulation = try Simulation(seed: seed, world.plan(), on: world.lab())
                try simulation.run()
                return simulation.trace
            }
            expectEqual(traces[0], traces[1])
        }
    }

    /// What each mutation breaks. A simulation that finds nothing wrong may look at nothing.
    @Test(arguments: Simulation.Mutation.allCases)
    func `a part that is left out breaks its promise`(mutation: Simulation.Mutation) throws {
        let expected: Set<PromiseLedger.Promise> =
            switch mutation {
            case .lyingStore: [.admittedOnce, .countersOnlyRise]
            case .noWait: [.admittedOnce, .countersOnlyRise, .revokedFromThen]
            case .oldSecret, .staleMemory: [.admittedOnce]
            case .silentRevocation, .noLateCheck: [.revokedFromThen]
            case .earlyEnrolment: [.enrolmentStays]
            }
        for seed in UInt64(1)...3_000 {
            let world = World.one
            let simulation = try Simulation(seed: seed, world.plan(mutation), on: world.lab())
            do throws(PromiseLedger.Broken) {
                try simulation.runForPromises()
            } catch {
                #expect(expected.contains(error.promise), "\(error)")
                return
            }
        }
        Issue.record("3,000 runs without \(mutation), and no promise was broken")
    }
}
