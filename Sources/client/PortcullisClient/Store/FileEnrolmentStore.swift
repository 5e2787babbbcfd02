public import Foundation

/// A store in a file, for Linux, command-line tools and Macs. A lock file beside it keeps processes
/// apart.
///
/// On iPhones use `KeychainEnrolmentStore`: the system ends an app that is suspended while it holds
/// a lock in a shared container.
public struct FileEnrolmentStore: EnrolmentStore {
    /// Why the file can't be used now.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Failure: Error, Hashable, Sendable {
        /// Another process holds the lock for longer than two seconds.
        case locked
        /// A call of the system failed, with this error number.
        case system(Int32)
    }

    private let file: PrivateFile
    /// Whether it is for one gateway's record.
    private let isScoped: Bool

    /// A store in files beside this one, which only their owner can read. The folder must exist.
    ///
    /// The file of a gateway's record has the origin of its endpoints behind this name:
    /// `record-api.example.com`.
    public init(file: URL) { (self.file, isScoped) = (PrivateFile(url: file), false) }

    private init(scoped file: URL) { (self.file, isScoped) = (PrivateFile(url: file), true) }

    /// The store for one gateway's record.
    public func scoped(to endpoints: URL) -> any EnrolmentStore {
        guard !isScoped, let gateway = RecordName(endpoints) else { return self }
        let name = "\(file.url.lastPathComponent)-\(gateway.fileText)"
        return Self(scoped: file.url.deletingLastPathComponent().appending(path: name))
    }

    /// What is kept.
    public func read() async throws -> Data? { try file.read() }

    /// Keeps a new record if the file holds the expected one.
    public func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        try await file.locked {
            let own = try file.read()
            guard own == expected else { return false }
            if let record {
                try file.write(record)
            } else if own != nil {
                try file.remove()
            }
            return true
        }
    }
}

/// A small file that processes share, and that only its owner reads. A lock file beside it
/// keeps them apart.
struct PrivateFile: Sendable {
    let url: URL

    /// The most looks at a lock that another process holds.
    private static let looksMax = 200
    /// The time between two of them, in seconds.
    private static let look: Double = 0.01

    /// What is in it; `nil` where there is none.
    func read() throws -> Data? {
        do {
            return try Data(contentsOf: url)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            // A file that is replaced is replaced whole, so that it is there or was never.
            return nil
        }
    }

    /// Replaces the file, or makes it. Call it under the lock.
    ///
    /// The new content goes into another file first, which then takes the name, so that a reader
    /// finds the old content or the new. That file has its permissions from its first moment on.
    func write(_ content: Data) throws {
        let path = url.path + ".new"
        // Left by a process that was killed.
        unlink(path)
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileEnrolmentStore.Failure.system(errno) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: content)
        try handle.synchronize()
        try handle.close()
        guard rename(path, url.path) == 0 else { throw FileEnrolmentStore.Failure.system(errno) }
    }

    /// Removes it. Call it under the lock.
    func remove() throws { try FileManager.default.removeItem(at: url) }

    /// Does something while no other process does.
    func locked<Result>(_ body: () throws -> Result) async throws -> Result {
        let lock = try await lock()
        // Closing the file gives the lock up.
        defer { close(lock) }
        return try body()
    }

    private func lock() async throws -> Int32 {
        let path = url.path + ".lock"
        let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileEnrolmentStore.Failure.system(errno) }
        let clock = SystemClock()
        for _ in 0..<Self.looksMax {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            let code = errno
            guard code == EWOULDBLOCK || code == EINTR else {
                close(descriptor)
                throw FileEnrolmentStore.Failure.system(code)
            }
            do {
                try await clock.wait(until: clock.now.addingTimeInterval(Self.look))
            } catch {
                close(descriptor)
                throw error
            }
        }
        close(descriptor)
        throw FileEnrolmentStore.Failure.locked
    }
}
