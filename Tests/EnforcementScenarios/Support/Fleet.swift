import AppAttest
import Foundation
import LoopbackKit

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
    let cables: [DatabaseCable]
    private let lock = NSLock()
    private var gateways: [GatewayProcess?]

    /// What a fleet keeps its keys in.
    enum Servers {
        case one
        /// What the first one answers, the second one has.
        case primaryAndStandby
    }

    /// - `rules`: the list of rules, in YAML without indentation.
    /// - `root`: the certificate that attestations rest on, in PEM; that of ``Scenario`` without.
    init(
        _ count: Int,
        rules: String,
        more: String = "",
        root: String? = nil,
        servers: Servers = .one
    ) throws {
        scenario = try Scenario()
        if let root { try scenario.write("root.pem", root) }
        origin = try scenario.origin()
        database = try DatabaseServer()
        standby =
            switch servers {
            case .one: nil
            case .primaryAndStandby: try DatabaseServer(standbyOf: database)
            }
        let others = standby.map { "," + $0.folder } ?? ""
        gateways = Array(repeating: nil, count: count)
        var cables: [DatabaseCable] = []
        for number in 0..<count {
            let near = scenario.path("c\(number)")
            try FileManager.default.createDirectory(
                atPath: near,
                withIntermediateDirectories: true
            )
            cables.append(
                try DatabaseCable(
                    from: near + "/.s.PGSQL.5432",
                    to: database.folder + "/.s.PGSQL.5432"
                )
            )
        }
        self.cables = cables
        for number in 0..<count {
            let address = database.address(at: scenario.path("c\(number)") + others)
            try configure(Self.file(number), rules, more, address)
        }
        let direct = database.address(at: database.folder + others)
        try configure("direct.yaml", rules, more, direct)
        try portcullis("store", "migrate", scenario.path("direct.yaml"))
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
            origin: "127.0.0.1:\(origin.port)",
            rules: rules,
            more: more,
            database: address
        )
    }

    var count: Int { gateways.count }

    /// A gateway that serves now, or was killed and not yet started again: `nil`.
    func gateway(_ number: Int) -> GatewayProcess? { lock.withLock { gateways[number] } }

    func start(_ number: Int) throws {
        let gateway = try scenario.serve(Self.file(number))
        lock.withLock { gateways[number] = gateway }
    }

    /// Has a gateway come back at the port that the system chose for it.
    func keepPort(_ number: Int) throws {
        guard let port = gateway(number)?.port else { return }
        let file = scenario.path(Self.file(number))
        let text = try String(contentsOfFile: file, encoding: .utf8)
        guard let place = text.range(of: "127.0.0.1:0") else { return }
        try scenario.write(
            Self.file(number),
            text.replacingCharacters(in: place, with: "127.0.0.1:\(port)")
        )
    }

    /// Ends a gateway as a crash does.
    func crash(_ number: Int) throws {
        let gateway = lock.withLock {
            defer { gateways[number] = nil }
            return gateways[number]
        }
        try gateway?.crash()
    }

    /// Runs a command with a cable that nobody cuts.
    @discardableResult
    func portcullis(_ arguments: String...) throws -> String {
        let answer = try scenario.portcullis(arguments)
        guard answer.status == 0 else {
            throw ChildProcess.Failure(description: "\(arguments): \(answer.complained)")
        }
        return answer.printed
    }

    /// Runs a command on the keys.
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
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        while true {
            do {
                try keys("revoke", keyID.base64)
                return
            } catch  where Date() < deadline {
                continue
            }
        }
    }

    func end() {
        for cable in cables { cable.end() }
        scenario.end()
        standby?.end()
        database.end()
    }
}
