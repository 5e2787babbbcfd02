package import Foundation

/// A program that a test has started: what it prints, and that it ends.
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
    private let process = Process()
    private let condition = NSCondition()
    private var bytes = Data()
    private var errors = Data()
    private var openStreams = 2
    private var hasEnded = false
    private let input = Pipe()

    /// Starts a program.
    ///
    /// - `input`: what it reads; `nil` keeps its standard input open until ``end()``.
    package init(
        _ program: String,
        _ arguments: [String],
        input text: Data? = Data(),
        folder: URL? = nil
    ) throws {
        name = URL(filePath: program).lastPathComponent
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        if let folder { process.currentDirectoryURL = folder }
        let (out, err) = (Pipe(), Pipe())
        process.standardOutput = out
        process.standardError = err
        process.standardInput = input
        process.terminationHandler = { [self] _ in
            condition.withLock {
                hasEnded = true
                condition.broadcast()
            }
        }
        try process.run()
        follow(out) { $0.bytes.append($1) }
        follow(err) { $0.errors.append($1) }
        guard let text else { return }
        // What is given to programs here is less than a pipe holds.
        try input.fileHandleForWriting.write(contentsOf: text)
        try input.fileHandleForWriting.close()
    }

    private func follow(_ pipe: Pipe, _ take: @escaping @Sendable (ChildProcess, Data) -> Void) {
        let handle = pipe.fileHandleForReading
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

    package var identifier: Int32 { process.processIdentifier }

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
                guard !(hasEnded && openStreams == 0), condition.wait(until: deadline) else {
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
        try condition.withLock {
            while !hasEnded || openStreams > 0 {
                guard condition.wait(until: deadline) else {
                    throw Failure(description: "\(name) does not end")
                }
            }
        }
        let status = process.terminationStatus
        return process.terminationReason == .uncaughtSignal ? -status : status
    }

    /// Sends a signal.
    package func signal(_ number: Int32) {
        let isRunning = condition.withLock { !hasEnded }
        if isRunning { kill(process.processIdentifier, number) }
    }

    /// Gives it a line to read, where that was kept open.
    package func say(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Ends what it reads, where that was kept open.
    package func endInput() { try? input.fileHandleForWriting.close() }

    /// Ends it at once, and waits for that.
    package func end() {
        endInput()
        signal(SIGKILL)
        do {
            try waitForEnd()
            // Nothing is waited for any more. The process holds a source of events that holds it,
            // and lets go of it here alone (swift-corelibs-foundation, pull request 2631).
            process.waitUntilExit()
        } catch {
            print("\(error)")
        }
        // It holds this object, which holds the process.
        process.terminationHandler = nil
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
