import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport

/// A gateway that is upgraded, with all processes that follow each other.
final class UpgradeStand {
    let scenario: Scenario
    let origin: RecordingOrigin
    let gateway: GatewayProcess
    private(set) var count = 0

    static let rules = StockRule.list(.bare, .window, .signed)

    /// - program: what is started, and started again; the one under test if `nil`.
    init(
        rules: String = UpgradeStand.rules,
        more: String = "timeouts: { drain: 10m }",
        origins: String = "",
        listeners: String = "",
        database: String? = nil,
        keys: Int = 0,
        program: String? = nil,
        within outer: [String] = []
    ) throws {
        scenario = try Scenario()
        origin = try scenario.origin()
        try scenario.configure(
            origin: "127.0.0.1:\(origin.port)",
            rules: rules,
            more: more,
            database: database,
            origins: origins,
            listeners: listeners
        )
        let file = scenario.path("portcullis.yaml")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        // Clients of these scenarios send on connections that the old process has.
        let changed = text.replacing("drain_idle: 100ms", with: "drain_idle: 1m")
            .replacing(
                "admin: { address: 127.0.0.1:0 }",
                with: "admin: { address: \"unix:\(scenario.path("admin"))\" }"
            )
            // No scenario here measures it, and two processes that start keep a database waiting.
            .replacing("postgresql: { ", with: "postgresql: { statement_timeout: 10s, ")
        try scenario.write("portcullis.yaml", changed)
        if database != nil {
            let made = try scenario.portcullis("store", "migrate", file)
            guard made.status == 0 else { throw ChildProcess.Failure(description: "\(made)") }
        }
        self.keys = try keys > 0 ? scenario.imported(keys) : []
        if let program {
            let words = outer + [program, "serve", file]
            gateway = try GatewayProcess(try scenario.start(words[0], Array(words.dropFirst())))
        } else {
            gateway = try scenario.serve(within: outer)
        }
    }

    /// Gives a program another path, at which a test replaces it. A link will do where both are on
    /// one disk: a debug build has 70 MB.
    static func place(_ program: String, at path: String) throws {
        guard link(program, path) != 0 else { return }
        try FileManager.default.copyItem(atPath: program, toPath: path)
    }

    /// Keys that were imported.
    var keys: [SoftwareKey]

    deinit { end() }

    /// Ends all processes.
    func end() {
        var all = [gateway.child.identifier] + processes
        all += all.flatMap(Self.children)
        for process in all.dropFirst() { kill(process, SIGKILL) }
        scenario.end()
    }

    /// Those that have taken over, in their order.
    var processes: [Int32] {
        gateway.child.complained.components(separatedBy: "upgrade: process ").dropFirst()
            .compactMap { Int32($0.prefix(while: \.isNumber)) }
    }

    /// Milliseconds for which each of them has kept clients waiting.
    var pauses: [Double] {
        gateway.child.complained.components(separatedBy: "accepting paused for ").dropFirst()
            .compactMap { Double($0.prefix { $0.isNumber || $0 == "." }) }
    }

    private static func children(of process: Int32) -> [Int32] {
        let tasks = "/proc/\(process)/task"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return names.flatMap { name in
            let text = try? String(contentsOfFile: "\(tasks)/\(name)/children", encoding: .utf8)
            return (text ?? "").split(separator: " ").compactMap { Int32($0) }
        }
    }

    /// Has the process that serves now hand over, and waits until the next one serves.
    ///
    /// Clients wait a bounded time for it. Where a busy machine takes longer, the upgrade is
    /// refused and nothing has changed: then it is asked again.
    func upgrade() throws {
        count += 1
        var refused = refusals(gateway.child.complained)
        let isServed = try eventually {
            kill(processes.last ?? gateway.child.identifier, SIGUSR2)
            return try gateway.child.wait(for: "the new process") { [count] _, complained in
                let isDone =
                    complained.components(separatedBy: "event loops, ").count > count + 1
                    && complained.components(separatedBy: "accepting paused for ").count > count
                if isDone { return true }
                guard refusals(complained) > refused else { return nil }
                refused = refusals(complained)
                return false
            }
        }
        guard isServed else {
            let last = gateway.child.complained.components(separatedBy: "upgrade: refused").last
            throw ChildProcess.Failure(description: "refused again and again\(last ?? "")")
        }
    }

    private func refusals(_ log: String) -> Int {
        log.components(separatedBy: "upgrade: refused").count
    }

    /// Waits until the log holds this.
    func awaitLog(_ what: String, _ isTrue: @escaping (String) -> Bool) throws {
        try gateway.child.wait(for: what) { _, complained in isTrue(complained) ? () : nil }
    }

    /// Waits until the log says something so many times.
    func awaitLine(_ text: String, times: Int = 1) throws {
        try awaitLog(text) { $0.components(separatedBy: text).count > times }
    }

    /// A connection, and a request before on it, so that a process has it.
    func connection() throws -> Wire {
        let wire = try Wire(port: gateway.port)
        try wire.send("GET /open HTTP/1.1\r\nHost: a\r\n\r\n")
        let status = try wire.readResponse().status
        guard status == 200 else { throw ChildProcess.Failure(description: "open: \(status)") }
        return wire
    }
}

extension Wire {
    /// Sends a request and reads the last response to it.
    func ask(_ request: [UInt8]) throws -> Answer {
        try send(request)
        return try readFinalResponse()
    }
}
