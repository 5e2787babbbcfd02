import CLinux
package import Foundation
import Gateway
import Glibc

/// A program that a test has started: what it prints, and that it ends.
///
/// Foundation's `Process` is not used: its `run` copies 280 bytes of each entry of /proc/self/fd,
/// and reads behind the end of the listing where more than 1,300 descriptors are open.
///
/// `@unchecked Sendable`: everything that changes is touched under `condition`.
package final class ChildProcess: @unchecked Sendable {
    /// Why a wait was given up.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// The most seconds that a test waits for anything.
    package static let patience = TimeInterval(Wire.patienceMilliseconds) / 1_000

    private let name: String
    package let identifier: Int32
    private let condition = NSCondition()
    private var bytes = Data()
    private var errors = Data()
    private var openStreams = 2
    /// Its status, as wait(2) tells it, once it has ended.
    private var status: Int32?
    private let input: FileHandle

    /// Starts a program, in a process group of its own.
    ///
    /// - `input`: what it reads; `nil` keeps its standard input open until ``end()``.
    package init(
        _ program: String,
        _ arguments: [String],
        input text: Data? = Data(),
        folder: URL? = nil
    ) throws {
        name = URL(filePath: program).lastPathComponent
        let (stdin, out, err) = (Pipe(), Pipe(), Pipe())
        let ends = [
            stdin.fileHandleForReading, out.fileHandleForWriting, err.fileHandleForWriting,
        ]
        input = stdin.fileHandleForWriting
        var process: pid_t = 0
        let variables = ProcessInfo.processInfo.environment.map { "\($0)=\($1)" }
        let words = [program] + arguments
        let fault = ProgramStart.spawn(
            program,
            words,
            environment: variables,
            process: &process
        ) { start in
            for (number, end) in ends.enumerated() {
                posix_spawn_file_actions_adddup2(
                    &start.actions,
                    end.fileDescriptor,
                    Int32(number)
                )
            }
            clinux_spawn_closes_from(&start.actions, 3)
            if let folder { clinux_spawn_changes_folder(&start.actions, folder.path) }
            posix_spawnattr_setpgroup(&start.attributes, 0)
            start.flags = POSIX_SPAWN_SETPGROUP
        }
        guard fault == 0 else {
            throw Failure(description: "\(program): \(String(cString: strerror(fault)))")
        }
        identifier = process
        for end in ends { try end.close() }
        Thread.detachNewThread { [self] in awaitEnd() }
        follow(out.fileHandleForReading) { $0.bytes.append($1) }
        follow(err.fileHandleForReading) { $0.errors.append($1) }
        guard let text else { return }
        // What is given to programs here is less than a pipe holds.
        try input.write(contentsOf: text)
        try input.close()
    }

    private func awaitEnd() {
        // The status stays unfetched until nobody can send a signal to the process any more.
        var found = siginfo_t()
        while waitid(P_PID, id_t(identifier), &found, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        condition.withLock {
            var ended: Int32 = 0
            while waitpid(identifier, &ended, 0) < 0, errno == EINTR {}
            status = ended
            condition.broadcast()
        }
    }

    private func follow(
        _ handle: FileHandle,
        _ take: @escaping @Sendable (ChildProcess, Data) -> Void
    ) {
        Thread.detachNewThread { [self] in
            while true {
                let data = handle.availableData
                condition.withLock {
                    if data.isEmpty { openStreams -= 1 } else { take(self, data) }
                    condition.broadcast()
                }
                if data.isEmpty { return }
            }
        }
    }

    /// The bytes that it has printed so far.
    package var output: [UInt8] { condition.withLock { Array(bytes) } }

    /// What it has printed so far.
    package var printed: String { condition.withLock { String(decoding: bytes, as: UTF8.self) } }

    /// What it has printed as errors so far.
    package var complained: String {
        condition.withLock { String(decoding: errors, as: UTF8.self) }
    }

    /// Waits until something is found in what it prints and complains.
    package func wait<Value>(
        for what: String,
        _ find: (_ printed: String, _ complained: String) -> Value?
    ) throws -> Value {
        let deadline = Date(timeIntervalSinceNow: Self.patience)
        return try condition.withLock {
            while true {
                let texts = (
                    String(decoding: bytes, as: UTF8.self),
                    String(decoding: errors, as: UTF8.self)
                )
                if let found = find(texts.0, texts.1) { return found }
                guard status == nil || openStreams > 0, condition.wait(until: deadline) else {
                    throw Failure(
                        description: "\(name): no \(what)\n\(texts.0)\n\(texts.1)"
                    )
                }
            }
        }
    }

    /// Waits for its end.
    ///
    /// - Returns: the exit status; a signal's number, negative, when one has ended it.
    @discardableResult
    package func waitForEnd(patience: TimeInterval = ChildProcess.patience) throws -> Int32 {
        let deadline = Date(timeIntervalSinceNow: patience)
        let ended = try condition.withLock { () throws -> Int32 in
            while true {
                if let status, openStreams == 0 { return status }
                guard condition.wait(until: deadline) else {
                    throw Failure(description: "\(name) does not end")
                }
            }
        }
        // wait(2): the low seven bits are the signal, the next byte is the status.
        let signal = ended & 0x7F
        return signal == 0 ? (ended >> 8) & 0xFF : -signal
    }

    /// Sends a signal.
    package func signal(_ number: Int32) {
        condition.withLock { if status == nil { kill(identifier, number) } }
    }

    /// Gives it a line to read, where that was kept open.
    package func say(_ line: String) throws {
        try input.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Ends what it reads, where that was kept open.
    package func endInput() { try? input.close() }

    /// Ends it at once, and waits for that.
    package func end() {
        endInput()
        signal(SIGKILL)
        do { try waitForEnd() } catch { print("\(error)") }
    }
}

extension ChildProcess {
    /// How a program that ran to its end went.
    package struct Outcome {
        package let status: Int32
        package let output: [UInt8]
        package let complained: String

        package var printed: String { String(decoding: output, as: UTF8.self) }
    }

    /// Runs a program to its end.
    package static func run(
        _ program: String,
        _ arguments: [String],
        input: String = "",
        folder: URL? = nil,
        patience: TimeInterval = ChildProcess.patience
    ) throws -> Outcome {
        let child = try ChildProcess(
            program,
            arguments,
            input: Data(input.utf8),
            folder: folder
        )
        defer { child.end() }
        let status = try child.waitForEnd(patience: patience)
        return Outcome(status: status, output: child.output, complained: child.complained)
    }

    /// Where a program is that a test needs; says so when it is nowhere.
    package static func tool(_ name: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        for folder in folders + ["/usr/bin", "/usr/sbin"] {
            let path = "\(folder)/\(name)"
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        print("no \(name): install it with deploy/install-packages test; a scenario is skipped")
        return nil
    }
}
