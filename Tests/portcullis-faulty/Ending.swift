import GRDBSQLite
import Glibc
import Synchronization

/// Ends the process when the chosen place is passed for the chosen time, or says what fails there.
enum Ending {
    private static let place = Mutex<Place?>(nil)
    private static let left = Atomic<Int>(0)
    private static let isArmed = Atomic(false)

    /// Chooses the place and makes SQLite's writes pass by here.
    static func choose(_ place: Place, _ count: Int) {
        Self.place.withLock { $0 = place }
        left.store(count, ordering: .relaxed)
        followWrites()
        followReads()
    }

    /// From now on passing counts, or no more. A signal's work: one exchange.
    static func arm() { isArmed.logicalXor(true, ordering: .acquiringAndReleasing) }

    /// The process is at this place.
    static func pass(_ place: Place) {
        if isTime(place) { end(place) }
    }

    /// Whether what happens at this place is to fail: for so many times from now on.
    static func fails(_ place: Place) -> Bool {
        isChosen(place) && left.wrappingSubtract(1, ordering: .relaxed).oldValue > 0
    }

    private static func isTime(_ place: Place) -> Bool {
        isChosen(place) && left.wrappingSubtract(1, ordering: .relaxed).newValue == 0
    }

    private static func isChosen(_ place: Place) -> Bool {
        isArmed.load(ordering: .acquiring) && Self.place.withLock { $0 } == place
    }

    private static func end(_ place: Place) {
        say("ended at \(place.rawValue)")
        kill(getpid(), SIGKILL)
    }

    /// Writes a line to standard error, without a buffer that would end with the process.
    static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = Glibc.write(2, line, line.count)
    }

    // MARK: SQLite's writes

    /// SQLite's own way to replace its system calls, meant for tests of faults (`sqlite3_vfs`,
    /// xSetSystemCall). Which of them it uses depends on how it was built.
    private static func followWrites() {
        let write: @convention(c) (Int32, UnsafeRawPointer?, Int) -> Int = { file, bytes, count in
            Ending.passWrite(to: file, count) { Glibc.write(file, bytes, $0) }
            return Glibc.write(file, bytes, count)
        }
        let pwrite: @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int = {
            file,
            bytes,
            count,
            offset in
            Ending.passWrite(to: file, count) { Glibc.pwrite(file, bytes, $0, offset) }
            return Glibc.pwrite(file, bytes, count, offset)
        }
        guard let system = sqlite3_vfs_find(nil), let replace = system.pointee.xSetSystemCall else {
            return
        }
        // SQLite casts them back to what they are before it calls them.
        _ = replace(system, "write", unsafeBitCast(write, to: sqlite3_syscall_ptr.self))
        for name in ["pwrite", "pwrite64"] {
            _ = replace(system, name, unsafeBitCast(pwrite, to: sqlite3_syscall_ptr.self))
        }
    }

    private static func followReads() {
        let read: @convention(c) (Int32, UnsafeMutableRawPointer?, Int) -> Int = {
            file,
            bytes,
            count in
            Ending.isReadFailing() ? -1 : Glibc.read(file, bytes, count)
        }
        let pread: @convention(c) (Int32, UnsafeMutableRawPointer?, Int, off_t) -> Int = {
            file,
            bytes,
            count,
            offset in
            Ending.isReadFailing() ? -1 : Glibc.pread(file, bytes, count, offset)
        }
        guard let system = sqlite3_vfs_find(nil), let replace = system.pointee.xSetSystemCall else {
            return
        }
        _ = replace(system, "read", unsafeBitCast(read, to: sqlite3_syscall_ptr.self))
        for name in ["pread", "pread64"] {
            _ = replace(system, name, unsafeBitCast(pread, to: sqlite3_syscall_ptr.self))
        }
    }

    private static func isReadFailing() -> Bool {
        guard fails(.read) else { return false }
        errno = EIO
        return true
    }

    /// At the end of a write none, some or all of its bytes have been written.
    private static func passWrite(to file: Int32, _ count: Int, _ write: (Int) -> Int) {
        var name = [UInt8](repeating: 0, count: 4_096)
        let length = readlink("/proc/self/fd/\(file)", &name, name.count)
        guard length > 0 else { return }
        let path = String(decoding: name[..<length], as: UTF8.self)
        let place = path.hasSuffix("-wal") ? Place.logWrite : .databaseWrite
        guard isTime(place) else { return }
        _ = write(Int.random(in: 0...count))
        end(place)
    }
}
