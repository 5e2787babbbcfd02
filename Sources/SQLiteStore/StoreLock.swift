internal import Glibc
internal import Synchronization

/// The lock that keeps two gateways from one database, held until it is released or this object
/// goes.
///
/// The file says who holds it and which file of changes it maps. Commands read that without the
/// lock.
final class StoreLock: Sendable {
    private let descriptor: Int32
    private let isReleased = Atomic(false)

    /// The path of the lock of a database.
    static func path(ofDatabase path: String) -> String { path + ".lock" }

    /// - Throws: `locked` when another gateway has it.
    init(database: String) throws(StoreProblem) {
        let path = Self.path(ofDatabase: database)
        let descriptor = try StoreFile.open(path)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let holder = Self.note(descriptor).map { "process \($0.process)" } ?? "a process"
            Glibc.close(descriptor)
            throw StoreProblem(.locked, database, "is used by another gateway, \(holder)")
        }
        ftruncate(descriptor, 0)
        self.descriptor = descriptor
    }

    deinit { release() }

    /// Gives the lock back. Idempotent.
    func release() {
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        ftruncate(descriptor, 0)
        Glibc.close(descriptor)
    }

    /// Writes down which file of changes this process maps.
    func note(changes identity: String) {
        let text = Array("\(getpid()) \(identity)\n".utf8)
        text.span.withUnsafeBytes { bytes in
            // The C border: pointer and count are of one buffer, which outlives the call.
            _ = pwrite(descriptor, bytes.baseAddress, bytes.count, 0)
        }
    }

    private struct Note {
        let process: String
        let changes: String
    }

    private static func note(_ descriptor: Int32) -> Note? {
        let text = [UInt8](unsafeUninitializedCapacity: 128) { buffer, count in
            // At most the buffer's count is written.
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        let words = String(decoding: text, as: UTF8.self).split { $0 == " " || $0 == "\n" }
        guard words.count == 2 else { return nil }
        return Note(process: String(words[0]), changes: String(words[1]))
    }

    /// The process id of a gateway that runs and maps another file of changes; `nil` when there is
    /// none.
    static func deafGateway(ofDatabase database: String, changes identity: String) -> String? {
        let descriptor = Glibc.open(path(ofDatabase: database), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // Closing gives the lock back, should the test below have taken it.
        defer { Glibc.close(descriptor) }
        guard let note = note(descriptor), note.changes != identity else { return nil }
        // The note of a gateway that crashed means nothing: its lock is free.
        return flock(descriptor, LOCK_SH | LOCK_NB) == 0 ? nil : note.process
    }
}
