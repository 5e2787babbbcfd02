internal import Glibc
internal import Synchronization

/// A number in memory that the gateway and the commands share: a mapped file.
///
/// `@unchecked Sendable`: the mapping lives as long as the object, is never moved, and all there is
/// in it is one atomic, which this and other processes reach by atomic operations only.
final class ChangeSignal: @unchecked Sendable {
    /// Octets of the file: one page, of which the first eight are used.
    static let octets = 4_096

    /// The path of the file of a database.
    static func path(ofDatabase path: String) -> String { path + ".changes" }

    private let page: UnsafeMutableRawPointer
    private let word: UnsafeMutablePointer<Atomic<UInt64>>
    /// Which file this is, to compare.
    let identity: String

    /// Maps the file; makes it where it is missing, and lengthens it where it is short. What it
    /// held is of no account: only a difference means something.
    init(database: String) throws(StoreProblem) {
        let path = Self.path(ofDatabase: database)
        let descriptor = try StoreFile.open(path)
        // The mapping stays when the descriptor is closed.
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0,
            status.st_size >= Self.octets || ftruncate(descriptor, off_t(Self.octets)) == 0,
            let identity = StoreFile.identity(descriptor)
        else { throw StoreProblem(.unusable, path, "can't be lengthened: \(StoreFile.lastError)") }
        guard
            let page = mmap(nil, Self.octets, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            page != MAP_FAILED
        else { throw StoreProblem(.unusable, path, "can't be mapped: \(StoreFile.lastError)") }
        self.page = page
        self.identity = identity
        // The page is aligned and longer than the atomic, which is eight octets of any value. The
        // file is never shortened by us, so every access has a page behind it.
        word = page.bindMemory(to: Atomic<UInt64>.self, capacity: 1)
    }

    deinit { munmap(page, Self.octets) }

    /// The number now: one load.
    var count: UInt64 { word.pointee.load(ordering: .acquiring) }

    /// Moves the number. Whoever loads it afterwards, in whichever process, sees that it moved.
    func raise() { word.pointee.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}
