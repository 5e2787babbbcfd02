import AppAttest
import Cryptography
import EventLoops
import RequestBinding
import Rules
import Synchronization
import Verification

/// Content that waits to be judged: in memory up to a size, beyond it in a file without a name.
///
/// The file has no name from its opening on, so nothing of it outlives the process. Held bytes are
/// counted before they are written: for all event loops together, for the client's address and for
/// its key. The count ends with ``release()``.
final class HeldBody: WholeContent {
    /// Why a piece can't be held. Nothing of the piece is held then.
    enum Fault: Error {
        /// The client's address holds the most bytes allowed.
        case addressIsFull
        /// The client's key holds the most bytes allowed.
        case keyIsFull
        /// The gateway holds the most bytes allowed.
        case isFull
        /// The file system failed, or has no room.
        case failed(SocketError)

        var refusal: Refusal {
            switch self {
            case .addressIsFull: .addressHeld
            case .keyIsFull: .keyHeld
            case .isFull: .heldFull
            case .failed: .spillFailed
            }
        }
    }

    /// Its limits.
    struct Bounds {
        let ledger: HeldLedger
        let limits: ProxyLimits
        /// The client's address; `nil` where it has no limits.
        let entry: AddressEntry?
        /// The most bytes of this content in memory.
        let memoryMax: Int
        let folder: String
        let files: FileThread
    }

    /// The bytes in memory: the first ones.
    private(set) var memory: [UInt8] = []
    private var file: UnnamedFile?
    /// Bytes in the file, which follow those in memory.
    private var fileCount = 0
    /// Bytes after those in the file: the last pieces of content that is no longer held and has not
    /// been sent yet.
    private var tail: [UInt8] = []
    private let bounds: Bounds
    private var hash = SHA256.Stream()
    /// The bytes that the ledger, the address and the key have counted.
    private var memoryTaken = 0
    private var addressTaken = 0
    private var keyTaken = 0
    /// The held place of the key that the request names.
    private var key: AddressEntry?

    /// The first bytes. They tell the content's form where the content itself is signed.
    private(set) var start: [UInt8] = []

    /// How many bytes are held.
    var count: Int { memory.count + fileCount + tail.count }
    /// Whether some of it is in a file.
    var isSpilled: Bool { file != nil }

    init(_ bounds: Bounds, key id: KeyID) {
        self.bounds = bounds
        let now = MonotonicClock.nanoseconds
        if case .held(let entry) = bounds.ledger.keys.hold(id, now: now) { key = entry }
    }

    /// Holds content that came whole with the head. It is counted and never refused: it is one
    /// read, already in memory, and judged at once. So the limits of other held content don't apply
    /// to it.
    init(_ bounds: Bounds, whole content: [UInt8]) {
        self.bounds = bounds
        memory = content
        start = Array(content.prefix(ClientDataDomain.startCount))
        if bounds.ledger.takeMemory(content.count, max: .max) { memoryTaken = content.count }
        if bounds.entry?.take(content.count, max: .max) == true { addressTaken = content.count }
    }

    deinit { release() }

    /// Stops holding; the bytes are dropped.
    func release() {
        bounds.ledger.giveBackMemory(memoryTaken)
        giveBackFile(fileCount)
        bounds.entry?.giveBack(addressTaken)
        key?.giveBack(keyTaken)
        key?.release(now: MonotonicClock.nanoseconds)
        key = nil
        (memoryTaken, addressTaken, keyTaken, fileCount) = (0, 0, 0, 0)
        memory = []
        tail = []
        if let file { bounds.files.close(file) }
        file = nil
    }

    /// SHA-256 of all that was appended.
    func digest() -> SHA256Digest { hash.digest() }

    // MARK: Writing

    /// Appends a piece and hashes it.
    func append(_ bytes: Span<UInt8>) throws(Fault) {
        let limits = bounds.limits
        if let entry = bounds.entry {
            guard entry.take(bytes.count, max: limits.addressHeldMax) else { throw .addressIsFull }
            addressTaken += bytes.count
        }
        if let key {
            guard key.take(bytes.count, max: limits.keyHeldMax) else { throw .keyIsFull }
            keyTaken += bytes.count
        }
        if takesMemory(for: bytes.count) {
            // The pointer lives for the call, and the copy is made inside it.
            bytes.withUnsafeBufferPointer { memory.append(contentsOf: $0) }
        } else {
            guard takesFile(for: bytes.count) else { throw .isFull }
            do throws(SocketError) {
                try spill(bytes)
            } catch {
                giveBackFile(bytes.count)
                throw .failed(error)
            }
            fileCount += bytes.count
        }
        hash.update(bytes)
        let missing = bytes.extracting(first: ClientDataDomain.startCount - start.count)
        missing.withUnsafeBufferPointer { start.append(contentsOf: $0) }
    }

    /// Appends a piece that is not held, but follows the bytes on their way to the origin.
    func appendUnheld(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { tail.append(contentsOf: $0) }
    }

    /// Whether this number of further bytes may be in memory; if so, it reserves the memory. Memory
    /// grows in doubling steps, and a whole step is counted.
    private func takesMemory(for more: Int) -> Bool {
        let needed = memory.count + more
        guard file == nil, needed <= bounds.memoryMax else { return false }
        guard needed > memoryTaken else { return true }
        let wanted = min(max(needed, memoryTaken * 2), bounds.memoryMax)
        guard
            bounds.ledger.takeMemory(wanted - memoryTaken, max: bounds.limits.heldMemoryMax)
        else { return false }
        memoryTaken = wanted
        memory.reserveCapacity(wanted)
        return true
    }

    /// Whether this number of further bytes may be in files. Files in a memory file system count as
    /// memory.
    private func takesFile(for more: Int) -> Bool {
        let limits = bounds.limits
        return limits.filesAreMemory
            ? bounds.ledger.takeMemory(more, max: limits.heldMemoryMax)
            : bounds.ledger.takeDisk(more, max: limits.heldDiskMax)
    }

    private func giveBackFile(_ count: Int) {
        if bounds.limits.filesAreMemory {
            bounds.ledger.giveBackMemory(count)
        } else {
            bounds.ledger.giveBackDisk(count)
        }
    }

    private func spill(_ bytes: Span<UInt8>) throws(SocketError) {
        let file: UnnamedFile
        if let made = self.file {
            file = made
        } else {
            file = try bounds.files.open(in: bounds.folder)
            self.file = file
        }
        // The pointer lives for the call, and the copy is made inside it.
        let copy = bytes.withUnsafeBufferPointer { Array($0) }
        try bounds.files.write(copy, to: file, at: fileCount)
    }

    // MARK: Reading

    /// All bytes, for a rule that reads the content; `nil` when the file can't be read.
    func text() -> [UInt8]? {
        guard isSpilled else { return memory }
        var all = memory
        var piece: [UInt8] = []
        do throws(SocketError) {
            while all.count < count {
                try read(from: all.count, into: &piece, max: EventLoop.inputBytes)
                all.append(contentsOf: piece)
            }
        } catch {
            return nil
        }
        return all
    }

    /// Looks whether the disk gives what is in the file.
    ///
    /// - Throws: `SocketError` of pread.
    func checkFile() throws(SocketError) {
        guard isSpilled else { return }
        var piece: [UInt8] = []
        try read(from: memory.count, into: &piece, max: 1)
    }

    /// Copies bytes from an offset: as many as there are, up to `max`.
    ///
    /// - Throws: `SocketError` of pread.
    func read(from offset: Int, into buffer: inout [UInt8], max: Int) throws(SocketError) {
        buffer.removeAll(keepingCapacity: true)
        guard offset < count else { return }
        if offset < memory.count {
            buffer.append(contentsOf: memory[offset..<min(memory.count, offset + max)])
            return
        }
        let start = offset - memory.count
        if start >= fileCount {
            let rest = start - fileCount
            buffer.append(contentsOf: tail[rest..<min(tail.count, rest + max)])
            return
        }
        guard let file else { return }
        buffer = try bounds.files.read(min(max, fileCount - start), of: file, at: start)
    }
}

/// The amount of held content of all event loops together, in memory and in files, and the amount
/// of responses that wait for HTTP/2 clients.
///
/// Held bytes are taken before they are written and given back when memory and file are gone.
/// A count may exceed its limit for a moment, until the excess is taken back. Another event loop's
/// bytes may be refused in that moment, but never are too many bytes held.
package final class HeldLedger: Sendable {
    private let inMemory = Atomic<Int>(0)
    private let onDisk = Atomic<Int>(0)
    private let unsent = Atomic<Int>(0)
    private let loops = Atomic<Int>(0)
    /// The counts of keys: places for 4,096 keys that hold content at the same time. For a key
    /// without a place, only the limits of the address and the total apply.
    let keys = AddressTable(capacity: 4_096, key: (RandomBytes.word(), RandomBytes.word()))

    package init() {}

    /// Bytes that are held in memory now.
    package var memoryBytes: Int { inMemory.load(ordering: .relaxed) }
    /// Bytes that are held in files now.
    package var diskBytes: Int { onDisk.load(ordering: .relaxed) }

    /// Bytes of responses that wait for HTTP/2 clients now.
    package var unsentBytes: Int { unsent.load(ordering: .relaxed) }

    /// Adds this number to the waiting bytes of responses; it may be negative.
    func countUnsent(_ change: Int) { unsent.wrappingAdd(change, ordering: .relaxed) }

    /// One more event loop uses the ledger.
    func addLoop() { loops.wrappingAdd(1, ordering: .relaxed) }

    /// The share of one event loop in a limit for all event loops together.
    func share(of max: Int) -> Int { max / Swift.max(loops.load(ordering: .relaxed), 1) }

    /// Takes memory; `false` when there would be more than `max` bytes of it.
    func takeMemory(_ count: Int, max: Int) -> Bool {
        guard inMemory.wrappingAdd(count, ordering: .relaxed).newValue > max else { return true }
        giveBackMemory(count)
        return false
    }

    /// Takes room in files; `false` when there would be more than `max` bytes of it.
    func takeDisk(_ count: Int, max: Int) -> Bool {
        guard onDisk.wrappingAdd(count, ordering: .relaxed).newValue > max else { return true }
        giveBackDisk(count)
        return false
    }

    func giveBackMemory(_ count: Int) { inMemory.wrappingSubtract(count, ordering: .relaxed) }

    func giveBackDisk(_ count: Int) { onDisk.wrappingSubtract(count, ordering: .relaxed) }
}

/// Content of a request that is here, or what the gateway keeps of it.
enum KeptContent {
    case nothing
    /// All of it came whole with the head, and is sent after it.
    case withHead([UInt8])
    /// It is held until it can be judged by what the head claims.
    indirect case unjudged(HeldBody, Proof)
    /// It was held, and goes to a server: judged, or released.
    case held(HeldBody)
    /// It is streamed, and must have the digest that the head states. The value is the hash so far.
    case hashed(StreamedDigest)

    var heldBody: HeldBody? {
        switch self {
        case .unjudged(let body, _), .held(let body): body
        case .nothing, .withHead, .hashed: nil
        }
    }

    /// The bytes that were here with the head, judged together with it.
    var arrived: [UInt8] {
        switch self {
        case .withHead(let bytes): bytes
        case .held(let body): body.memory
        case .nothing, .unjudged, .hashed: []
        }
    }

    /// Whether a signature was verified for it, and the request is not admitted yet.
    var hasCostSignature: Bool {
        if case .unjudged(_, let proof) = self { proof.hasCostSignature } else { false }
    }

    func hash(_ piece: Span<UInt8>) {
        if case .hashed(let digest) = self { digest.stream.update(piece) }
    }

    /// Takes the bytes that came with the head, to send them with it.
    mutating func takeArrived() -> [UInt8] {
        guard case .withHead(let bytes) = self else { return [] }
        self = .nothing
        return bytes
    }
}

/// The digest so far of streamed content. A reference, because it is large, and most requests have
/// none.
final class StreamedDigest {
    @exclusivity(unchecked) var stream = SHA256.Stream()
}
