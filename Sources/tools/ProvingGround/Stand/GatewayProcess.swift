import CLinux
import Foundation
import Gateway
import Glibc
import LoopbackSockets
import Synchronization

/// The gateway of a case: the program, which may end and come back at the same port.
final class GatewayProcess: Sendable {
    private struct State {
        var process: pid_t = 0
        var log = ""
        var port: UInt16 = 0
        var hasEnded = true
        /// Whether its configuration names the port. A reload must not change that.
        var namesPort = false
    }

    /// Seconds that a start or a reload takes at most.
    private static let patience = 120.0
    /// The most characters of the log that are kept.
    private static let logMax = 256 << 10

    private let program: String
    private let folder: URL
    private let running: RunningGateways
    private let state = Mutex(State())
    private let changed = NSCondition()

    /// Where it listens, on 127.0.0.1.
    var port: UInt16 { state.withLock { $0.port } }

    private var file: URL { folder.appending(path: "portcullis.yaml") }

    /// Starts it in a folder.
    ///
    /// - text: its configuration, with `127.0.0.1:0` as its first address.
    init(
        _ program: String,
        in folder: URL,
        configuredBy text: String,
        among running: RunningGateways
    ) throws(ToolError) {
        (self.program, self.folder, self.running) = (program, folder, running)
        try write(text)
        try start()
    }

    // MARK: What a case does with it

    /// Ends it as a crash does.
    func kill() {
        let process = state.withLock { $0.hasEnded ? 0 : $0.process }
        guard process > 0 else { return }
        running.kill(process)
        _ = awaits { $0.hasEnded }
    }

    /// Starts it, at the port that it had before.
    func start(wipingStore: Bool = false) throws(ToolError) {
        if wipingStore { wipeStore() }
        let port = port
        if port > 0 {
            state.withLock { $0.namesPort = true }
            let old = FileManager.default.contents(atPath: file.path) ?? Data()
            try write(placed(String(decoding: old, as: UTF8.self)))
        }
        try spawn()
        let began = "listening on 127.0.0.1:"
        let isThere = awaits { state in
            state.hasEnded || (state.log.contains(began) && state.log.contains(" event loops, "))
        }
        let (log, hasEnded) = state.withLock { ($0.log, $0.hasEnded) }
        guard isThere, !hasEnded, let place = log.range(of: began),
            let found = UInt16(log[place.upperBound...].prefix { $0.isNumber })
        else { throw ToolError("the gateway does not start: \(log)") }
        guard port == 0 || port == found else {
            throw ToolError("the gateway came back at another port")
        }
        state.withLock { $0.port = found }
    }

    func restart(wipingStore: Bool = false) throws(ToolError) {
        kill()
        try start(wipingStore: wipingStore)
    }

    /// Gives it another configuration, as an operator does with a reload.
    func reload(_ text: String) throws(ToolError) {
        try write(placed(text))
        let process = state.withLock { state in
            state.log = ""
            return state.hasEnded ? 0 : state.process
        }
        guard process > 0 else { return }
        Glibc.kill(process, SIGHUP)
        guard awaits({ $0.hasEnded || $0.log.contains("reload") }),
            state.withLock({ $0.log.contains("reloaded ") })
        else { throw ToolError("the gateway refuses its configuration: \(log)") }
    }

    /// Runs a command of the program on the configuration, as `keys revoke`.
    func run(_ words: [String]) throws(ToolError) {
        var arguments = words
        arguments.insert(contentsOf: ["--config", file.path], at: min(2, arguments.count))
        let pipe = Pipe()
        let process = try Self.spawn(program, arguments, in: folder, errorsInto: pipe)
        try? pipe.fileHandleForWriting.close()
        let said = pipe.fileHandleForReading.readDataToEndOfFile()
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            throw ToolError(
                "\(words.joined(separator: " ")): \(String(decoding: said, as: UTF8.self))"
            )
        }
    }

    // MARK: The process

    private var log: String { state.withLock { $0.log } }

    private func write(_ text: String) throws(ToolError) {
        guard FileManager.default.createFile(atPath: file.path, contents: Data(text.utf8)) else {
            throw ToolError("can't write \(file.path)")
        }
    }

    /// A configuration with the port in its first address, once it is known.
    private func placed(_ text: String) -> String {
        let (port, namesPort) = state.withLock { ($0.port, $0.namesPort) }
        let (old, new) = (Self.anyPort, "127.0.0.1:\(port)\"")
        return namesPort && text.prefix(Self.firstLineMax).contains(old)
            ? text.replacing(old, with: new, maxReplacements: 1) : text
    }

    private static let anyPort = "127.0.0.1:0\""
    /// The first address stands in the first line.
    private static let firstLineMax = 40

    private func wipeStore() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names where name.hasPrefix("portcullis.db") {
            try? FileManager.default.removeItem(at: folder.appending(path: name))
        }
    }

    private func spawn() throws(ToolError) {
        let pipe = Pipe()
        let (program, file, folder) = (program, file, folder)
        let process = try running.start { () throws(ToolError) in
            try Self.spawn(program, ["serve", file.path], in: folder, errorsInto: pipe)
        }
        try? pipe.fileHandleForWriting.close()
        state.withLock { state in
            (state.process, state.hasEnded, state.log) = (process, false, "")
        }
        let output = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in follow(output, process) }
    }

    private func follow(_ output: FileHandle, _ process: pid_t) {
        while true {
            let data = output.availableData
            guard !data.isEmpty else { break }
            note { state in
                guard state.log.utf8.count < Self.logMax else { return }
                state.log += String(decoding: data, as: UTF8.self)
            }
        }
        running.fetchEnd(of: process)
        note { $0.hasEnded = true }
    }

    private func note(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
        changed.withLock { changed.broadcast() }
    }

    private func awaits(_ isTrue: (State) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: Self.patience)
        return changed.withLock {
            while !state.withLock({ isTrue($0) }) {
                guard changed.wait(until: deadline) else { return false }
            }
            return true
        }
    }

    /// Starts a program whose standard error, and nothing else, goes into a pipe.
    private static func spawn(
        _ program: String,
        _ arguments: [String],
        in folder: URL,
        errorsInto pipe: Pipe
    ) throws(ToolError) -> pid_t {
        let variables = ProcessInfo.processInfo.environment.map { "\($0)=\($1)" }
        let errors = pipe.fileHandleForWriting.fileDescriptor
        var process: pid_t = 0
        let words = [program] + arguments
        let fault = ProgramStart.spawn(
            program,
            words,
            environment: variables,
            process: &process
        ) { start in
            posix_spawn_file_actions_addopen(&start.actions, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen(&start.actions, 1, "/dev/null", O_WRONLY, 0)
            posix_spawn_file_actions_adddup2(&start.actions, errors, 2)
            clinux_spawn_closes_from(&start.actions, 3)
            clinux_spawn_changes_folder(&start.actions, folder.path)
        }
        guard fault == 0 else {
            throw ToolError("\(program) can't be started: \(String(cString: strerror(fault)))")
        }
        return process
    }
}
