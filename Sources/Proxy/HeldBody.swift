import Cryptography
import Glibc
import Transport

/// Content that waits to be judged: in memory up to a size, beyond it in a file without a name.
///
/// The file is opened with O_TMPFILE, so nothing of it outlives the process.
final class HeldBody {
    /// How many octets are held.
    private(set) var count = 0
    /// What is in memory: the first octets.
    private(set) var memory: [UInt8] = []
    private var file: Int32 = -1
    private let memoryMax: Int
    private let folder: String
    private var hash = SHA256.Stream()

    /// Whether some of it is in a file.
    var isSpilled: Bool { file >= 0 }

    /// - Parameters:
    ///   - memoryMax: octets held in memory at the most.
    ///   - folder: where the file is made; it needs room for the rule's limit.
    init(memoryMax: Int, folder: String) {
        self.memoryMax = memoryMax
        self.folder = folder
    }

    deinit { if file >= 0 { _ = Glibc.close(file) } }

    /// SHA-256 of all that was appended.
    func digest() -> SHA256Digest { hash.digest() }

    /// Appends octets and hashes them.
    ///
    /// - Throws: `SocketError` of open or pwrite: no room, or no such folder.
    func append(_ octets: Span<UInt8>) throws(SocketError) {
        hash.update(octets)
        let room = max(memoryMax - memory.count, 0)
        let kept = file < 0 ? min(room, octets.count) : 0
        if kept > 0 {
            // The pointer lives for the call, and the copy is made inside it.
            octets.extracting(first: kept).withUnsafeBufferPointer { memory.append(contentsOf: $0) }
            count += kept
        }
        if kept < octets.count { try spill(octets.extracting(droppingFirst: kept)) }
    }

    private func spill(_ octets: Span<UInt8>) throws(SocketError) {
        if file < 0 {
            file = try UnnamedFile.open(in: folder)
        }
        var written = 0
        while written < octets.count {
            let rest = octets.extracting(droppingFirst: written)
            let done = rest.withUnsafeBytes {
                pwrite(file, $0.baseAddress, $0.count, off_t(count - memory.count))
            }
            guard done > 0 || errno == EINTR else { throw SocketError("pwrite") }
            written += max(done, 0)
            count += max(done, 0)
        }
    }

    /// All octets, for a rule that looks into the content; empty when the file can't be read.
    func text() -> [UInt8] {
        guard isSpilled else { return memory }
        var all = memory
        var piece: [UInt8] = []
        do throws(SocketError) {
            while all.count < count {
                try read(from: all.count, into: &piece, max: Lane.inputBytes)
                all.append(contentsOf: piece)
            }
        } catch {
            return []
        }
        return all
    }

    /// Copies octets from an offset, as many as there are and fit.
    ///
    /// - Throws: `SocketError` of pread.
    func read(from offset: Int, into buffer: inout [UInt8], max: Int) throws(SocketError) {
        buffer.removeAll(keepingCapacity: true)
        guard offset < count else { return }
        if offset < memory.count {
            buffer.append(contentsOf: memory[offset..<min(memory.count, offset + max)])
            return
        }
        var failure: SocketError?
        let wanted = min(max, count - offset)
        buffer = [UInt8](unsafeUninitializedCapacity: wanted) { target, filled in
            // The target holds `wanted` octets, and pread writes no more than it is given.
            let done = pread(file, target.baseAddress, wanted, off_t(offset - memory.count))
            if done <= 0 { failure = SocketError("pread") }
            filled = Swift.max(done, 0)
        }
        if let failure { throw failure }
    }
}
