import Foundation
import Glibc

/// The process of the next version, while this one may have to end it.
final class SuccessorProcess: Sendable {
    /// The variable that names the descriptor of the socket to this process.
    static let variable = "PORTCULLIS_HANDOVER"
    /// That descriptor, in the new process.
    private static let descriptor: Int32 = 3

    let identifier: pid_t
    let socket: HandoverSocket

    /// Starts the program that is now at this one's path, with its arguments and environment.
    ///
    /// - environment: further variables.
    /// - program: another program, for tests; `nil` for this one's path.
    init(_ environment: [String: String], program: String? = nil) throws(UpgradeRefusal) {
        guard let (own, other) = HandoverSocket.pair() else {
            throw UpgradeRefusal("no socket for it: \(Self.lastError)")
        }
        let path = if let program { program } else { try Self.programPath() }
        var variables = ProcessInfo.processInfo.environment
        variables.merge(environment) { $1 }
        variables[Self.variable] = String(Self.descriptor)
        var process: pid_t = 0
        // Closed here once the new process has its own: then this process notices its end.
        let status = withExtendedLifetime(other) {
            let environment = variables.map { "\($0)=\($1)" }
            return ProgramStart.spawn(path, CommandLine.arguments, environment, &process) { start in
                posix_spawn_file_actions_adddup2(
                    &start.actions,
                    other.descriptor,
                    Self.descriptor
                )
            }
        }
        guard status == 0 else {
            throw UpgradeRefusal("\(path) can't be started: \(String(cString: strerror(status)))")
        }
        identifier = process
        socket = own
    }

    /// The path of this process's program when it started; a newer program may be there now.
    private static func programPath() throws(UpgradeRefusal) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { buffer in
            // At most the buffer's count is written.
            buffer.withMemoryRebound(to: CChar.self) {
                $0.baseAddress.map { readlink("/proc/self/exe", $0, buffer.count) } ?? -1
            }
        }
        guard count > 0 else { throw UpgradeRefusal("/proc/self/exe: \(lastError)") }
        let path = String(decoding: bytes.prefix(count), as: UTF8.self)
        // proc(5): the suffix of a file that was deleted.
        let gone = " (deleted)"
        return path.hasSuffix(gone) ? String(path.dropLast(gone.count)) : path
    }

    private static var lastError: String { String(cString: strerror(errno)) }

    /// Ends it, and returns when it has ended. It decides nothing afterwards.
    func kill() {
        _ = Glibc.kill(identifier, SIGKILL)
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    }
}

/// Why there is no upgrade; the old process continues as before.
struct UpgradeRefusal: Error {
    let text: String

    init(_ text: String) { self.text = text }
}
