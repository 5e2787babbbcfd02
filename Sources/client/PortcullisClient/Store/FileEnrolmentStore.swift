public import Foundation

/// A store in a file, for Linux, command-line tools and Macs. A lock file beside it keeps processes
/// apart.
///
/// On iPhones use `KeychainEnrolmentStore`: the system ends an app that is suspended while it holds
/// a lock in a shared container.
public struct FileEnrolmentStore: EnrolmentStore {
    /// Why the file can't be used now.
    public enum Failure: Error, Hashable, Sendable {
        /// Another process holds the lock for longer than two seconds.
        case locked
        /// A call of the system failed, with this error number.
        case system(Int32)
    }

    private let file: URL

    /// The most looks at a lock that another process holds.
    private static let looksMax = 200
    /// The time between two of them, in seconds.
    private static let look: Double = 0.01

    /// A store in this file. The folder must exist.
    public init(file: URL) { self.file = file }

    /// What is kept.
    public func read() async throws -> Data? {
        do {
            return try Data(contentsOf: file)
        } catch {
            // A file that is replaced is replaced whole, so that it is there or was never.
            guard !FileManager.default.fileExists(atPath: file.path) else { throw error }
            return nil
        }
    }

    /// Keeps a new record if the file holds the expected one.
    public func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        let lock = try await locked()
        // Closing the file gives the lock up.
        defer { close(lock) }
        guard try await read() == expected else { return false }
        if let record {
            try record.write(to: file, options: .atomic)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600],
                ofItemAtPath: file.path
            )
        } else if expected != nil {
            try FileManager.default.removeItem(at: file)
        }
        return true
    }

    private func locked() async throws -> Int32 {
        let path = file.path + ".lock"
        let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure.system(errno) }
        let clock = SystemClock()
        for _ in 0..<Self.looksMax {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            do {
                try await clock.wait(until: clock.now.addingTimeInterval(Self.look))
            } catch {
                close(descriptor)
                throw error
            }
        }
        close(descriptor)
        throw Failure.locked
    }
}
