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

    private let file: PrivateFile

    /// A store in this file, which only its owner can read. The folder must exist.
    public init(file: URL) { self.file = PrivateFile(url: file) }

    /// What is kept.
    public func read() async throws -> Data? { try file.read() }

    /// Keeps a new record if the file holds the expected one.
    public func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        try await file.locked {
            guard try file.read() == expected else { return false }
            if let record {
                try file.write(record)
            } else if expected != nil {
                try file.remove()
            }
            return true
        }
    }
}
