import AppAttest
import Foundation
import Glibc
import LoopbackKit
import TestSupport

/// Gateways that share a database, each by a cable of its own, before one origin.
///
/// `@unchecked Sendable`: which gateways serve changes under `lock`; a member is started and ended
/// by one thread.
final class Fleet: @unchecked Sendable {
    let scenario: Scenario
    let origin: RecordingOrigin
    let database: DatabaseServer
    /// Takes over when the database is gone.
    let standby: DatabaseServer?
    let cables: [any FleetCable]
    let reach = FleetReach()
    private let networks: [NetworkNamespace]
    private let arrangement: Arrangement
    private let lock = NSLock()
    private var members: [Member?]

    /// A gateway of the fleet.
    private enum Member {
        case process(GatewayProcess)
        case hosted(SteppedGateway)
    }

    /// How the gateways run.
    enum Arrangement: CaseIterable, Sendable {
        /// As processes that reach the database by Unix sockets.
        case processes
        /// As processes, each on a network of its own with a cable to that of the database.
        case networks
        /// In the tests' process, with clocks that are hours apart.
        case skewedClocks

        /// Those that can be had here.
        static var possible: [Arrangement] {
            allCases.filter { $0 != .networks || NetworkNamespace.isPossible }
        }
    }

    /// What a fleet keeps its keys in.
    enum Servers {
        case one
        /// What the first one answers, the second one has.
        case primaryAndStandby
        /// The second one follows, and nothing waits for it.
        case primaryAndFollower
    }

    /// - `rules`: the list of rules, in YAML without indentation.
    /// - `takesOrders`: whether operators may call at the admin listeners; the gateways are named
    ///   g0, g1 and so on.
    /// - `root`: the certificate that attestations rest on, in PEM; that of ``Scenario`` without.
    /// - `revokesSoon`: whether commands return two seconds after a revocation, not three: for
    ///   fleets without sessions. A gateway that reads changes later than that refuses those.
    init(
        _ count: Int,
        rules: String,
        more: String = "",
        root: String? = nil,
        servers: Servers = .one,
        arrangement: Arrangement = .processes,
        takesOrders: Bool = false,
        revokesSoon: Bool = false
    ) throws {
        self.arrangement = arrangement
        scenario = try Scenario()
        if let root { try scenario.write("root.pem", root) }
        var far: NetworkNamespace?
        if case .networks = arrangement {
            // A socket's file is on all networks.
            origin = try scenario.origin(socket: scenario.path("origin"))
            far = try NetworkNamespace()
            networks = try (0..<count).map { _ in try NetworkNamespace() }
        } else {
            origin = try scenario.origin()
            networks = []
        }
        database = try DatabaseServer(in: far)
        standby =
            switch servers {
            case .one: nil
            case .primaryAndStandby: try DatabaseServer(standbyOf: database, isWaitedFor: true)
            case .primaryAndFollower: try DatabaseServer(standbyOf: database, isWaitedFor: false)
            }
        let others = standby.map { "," + $0.folder } ?? ""
        // The text goes between quotation marks.
        let settings = revokesSoon ? "\", revoked_within: \"2s" : ""
        members = Array(repeating: nil, count: count)
        var cables: [any FleetCable] = []
        var places: [String] = []
        for number in 0..<count {
            if let far {
                let cable = try NetworkCable(from: networks[number], to: far, number: number)
                cables.append(cable)
                places.append(cable.farAddress + " sslmode=disable")
            } else {
                let near = scenario.path("c\(number)")
                cables.append(try DatabaseCable(near, to: database))
                places.append(near)
            }
        }
        self.cables = cables
        for (number, place) in places.enumerated() {
            let address = database.address(at: place + others) + settings
            try configure(Self.file(number), rules, more, address)
        }
        if takesOrders {
            for number in 0..<count {
                try rewrite(number, "127.0.0.1:0 }\nevent", "127.0.0.1:0, calls: any }\nevent")
                try rewrite(number, "\" } }", "\", gateway: g\(number) } }")
            }
        }
        let direct = database.address(at: database.folder + others) + settings
        try configure("direct.yaml", rules, more, direct)
        for number in 0..<count { try start(number) }
    }

    private static func file(_ number: Int) -> String { "gateway\(number).yaml" }

    private func configure(
        _ file: String,
        _ rules: String,
        _ more: String,
        _ address: String
    ) throws {
        try scenario.configure(
            file,
            origin: origin.address,
            rules: rules,
            more: more,
            database: address
        )
    }

    var count: Int { members.count }

    /// A gateway that serves now; `nil` when it was killed and not yet started again.
    func member(_ number: Int) -> (any ServedGateway)? {
        switch lock.withLock({ members[number] }) {
        case .process(let gateway): gateway
        case .hosted(let gateway): gateway
        case nil: nil
        }
    }

    /// The same, where it is a process.
    func gateway(_ number: Int) -> GatewayProcess? { member(number) as? GatewayProcess }

    func start(_ number: Int) throws {
        let file = Self.file(number)
        let member: Member =
            switch arrangement {
            case .processes: .process(try scenario.serve(file))
            case .networks: .process(try scenario.serve(file, in: networks[number]))
            case .skewedClocks: .hosted(try SteppedGateway(scenario, file))
            }
        lock.withLock { members[number] = member }
        // Two hours behind, right, two hours ahead.
        stepClock(of: number, hours: Int64(number - 1) * 2)
    }

    /// Steps the clock of a gateway that has one.
    func stepClock(of number: Int, hours: Int64) {
        guard case .hosted(let gateway) = lock.withLock({ members[number] }) else { return }
        gateway.step(hours: hours)
    }

    /// Has a gateway come back at the port that the system chose for it.
    func keepPort(_ number: Int) throws {
        guard let port = gateway(number)?.port else { return }
        try rewrite(number, "127.0.0.1:0", "127.0.0.1:\(port)")
    }

    /// Changes the configuration of a gateway for its next start, where the text is in it.
    func rewrite(_ number: Int, _ text: String, _ new: String) throws {
        let file = Self.file(number)
        let all = try String(contentsOfFile: scenario.path(file), encoding: .utf8)
        guard let place = all.range(of: text) else { return }
        try scenario.write(file, all.replacingCharacters(in: place, with: new))
    }

    /// Ends a gateway as a crash does.
    func crash(_ number: Int) throws {
        let gateway = gateway(number)
        lock.withLock { members[number] = nil }
        try gateway?.crash()
    }

    /// Ends a gateway as a service manager does.
    func stop(_ number: Int) throws {
        let gateway = gateway(number)
        lock.withLock { members[number] = nil }
        gateway?.child.signal(SIGTERM)
        _ = try gateway?.child.waitForEnd()
    }

    /// Runs a command on the keys, with a cable that nobody cuts.
    @discardableResult
    func keys(_ command: String, _ arguments: String...) throws -> String {
        let words = ["keys", command, "--config", scenario.path("direct.yaml")] + arguments
        let answer = try scenario.portcullis(words)
        guard answer.status == 0 else {
            throw ChildProcess.Failure(description: "\(words): \(answer.complained)")
        }
        return answer.printed
    }

    /// Revokes a key as an operator does: a command that fails, since the database has just ended
    /// its connection or recovers, is given again.
    func revoke(_ keyID: KeyID) throws {
        var fault: (any Error)?
        eventually {
            do { try keys("revoke", keyID.base64) } catch {
                fault = error
                return false
            }
            fault = nil
            return true
        }
        if let fault { throw fault }
    }

    func end() {
        for case .hosted(let gateway) in lock.withLock({ members }) { gateway.stop() }
        for cable in cables { cable.end() }
        scenario.end()
        standby?.end()
        database.end()
    }
}
