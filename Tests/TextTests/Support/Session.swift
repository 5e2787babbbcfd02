import Foundation
import Glibc
import LoopbackKit

/// One shell that executes a document's steps from the first to the last, in a folder of its own.
///
/// The folder has the files of the repository that texts name: `rules`, `deploy`, and the built
/// programs as `.build/debug`. Ports that the texts use are replaced by free ones.
struct Session {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The ports that texts may use.
    private static let ports = ["8080", "8081", "9901"]
    /// The seconds that a document may take.
    private static let patience = 240
    /// Folders of a host, in whose place the text has folders of its own.
    private static let hosts = ["/etc/portcullis", "/var/lib/portcullis"]

    private let folder: URL
    private let substitutes: [(text: String, used: String)]

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-text-\(UUID().uuidString)")
        let build = folder.appending(path: ".build")
        try FileManager.default.createDirectory(at: build, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            at: build.appending(path: "debug"),
            withDestinationURL: Repository.programs
        )
        for name in ["rules", "deploy"] {
            try FileManager.default.copyItem(
                at: Repository.folder.appending(path: name),
                to: folder.appending(path: name)
            )
        }
        substitutes = try Self.ports.map { port -> (text: String, used: String) in
            let free = try LoopbackKit.freePort()
            return (port, "\(free)")
        }
    }

    /// Removes the folder.
    func end() { try? FileManager.default.removeItem(at: folder) }

    /// Executes the steps.
    ///
    /// - Returns: what each printed, in lines.
    func run(_ steps: [Step]) async throws -> [[String]] {
        // What the commands have started goes with the shell: `timeout` makes a process group.
        var script = "trap 'kill -KILL 0' EXIT\nPATH=$PWD/.build/debug:$PATH\n"
        for (index, step) in steps.enumerated() {
            script += "exec > \(folder.path)/\(index).out 2>&1\n"
            script += step.commands.map { replaced($0, forward: true) }.joined(separator: "\n")
            script += "\n"
        }
        let file = folder.appending(path: "commands")
        try script.write(to: file, atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "timeout", "--kill-after=5", "\(Self.patience)", "bash", "--noprofile", "--norc",
            file.path,
        ]
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        var environment = ProcessInfo.processInfo.environment
        environment["LC_ALL"] = "C.UTF-8"
        // Temporary files of a text are removed with the folder.
        environment["TMPDIR"] = folder.path
        process.environment = environment
        let status = try await Self.end(of: process)
        // It lets go of itself here alone, as ChildProcess.end() says.
        process.waitUntilExit()
        guard status != 124 else {
            throw Failure(description: "the commands took more than \(Self.patience) s")
        }
        return try steps.indices.map { index in
            let output = folder.appending(path: "\(index).out")
            guard Repository.exists(output) else {
                throw Failure(description: "the shell ended before line \(steps[index].line)")
            }
            let text = String(decoding: try Data(contentsOf: output), as: UTF8.self)
            return text.replacing("\r\n", with: "\n")
                .split(separator: "\n", omittingEmptySubsequences: false)
                .map { replaced(String($0), forward: false) }
        }
    }

    /// Starts a process.
    ///
    /// - Returns: the status with which it has ended.
    private static func end(of process: Process) async throws -> Int32 {
        try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            // The threads of Dispatch block signals, and a child begins with its thread's mask.
            var none = sigset_t()
            var before = sigset_t()
            sigemptyset(&none)
            pthread_sigmask(SIG_SETMASK, &none, &before)
            defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
            do {
                try process.run()
            } catch {
                process.terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
    }

    private func replaced(_ line: String, forward: Bool) -> String {
        var line = line
        for (text, used) in substitutes {
            let (from, to) = forward ? (text, used) : (used, text)
            line = line.replacingOccurrences(
                of: "\\b\(from)\\b",
                with: to,
                options: .regularExpression
            )
        }
        for path in Self.hosts {
            let own = folder.path + path
            line = forward ? line.replacing(path, with: own) : line.replacing(own, with: path)
        }
        return line
    }
}
