import Cryptography
import Glibc
import LoopbackKit

/// Content of any length that no compression and no mistake reproduces: a block again and again.
struct Content: Sendable {
    static let blockBytes = 1 << 20

    /// Made once, of words: a closure for each byte takes a while in a debug build.
    private static let block: [UInt8] = {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        let words = (0..<Self.blockBytes / 8).map { _ -> UInt64 in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
        return words.withUnsafeBytes { Array($0) }
    }()

    let count: Int

    init(count: Int) { self.count = count }

    /// The bytes in pieces of at most a block.
    var pieces: some Sequence<[UInt8]> {
        stride(from: 0, to: count, by: Self.blockBytes).lazy.map { start -> [UInt8] in
            let rest = count - start
            return rest < Self.blockBytes ? Array(Self.block[..<rest]) : Self.block
        }
    }

    var digest: SHA256Digest {
        var stream = SHA256.Stream()
        for piece in pieces { stream.update(piece.span) }
        return stream.digest()
    }
}

extension Wire {
    func send(_ content: Content) throws {
        for piece in content.pieces { try send(piece) }
    }

    /// Sends content as chunks of sizes that differ, without the last chunk.
    func sendChunks(of content: Content) throws {
        var size = 1
        for piece in content.pieces {
            var start = 0
            while start < piece.count {
                let end = min(start + size, piece.count)
                let length = String(end - start, radix: 16)
                try send(Array("\(length)\r\n".utf8) + piece[start..<end] + [13, 10])
                start = end
                size = size * 7 % 200_003 + 1
            }
        }
    }

    /// Takes so many bytes and says what they hash to.
    func digest(of count: Int) throws -> SHA256Digest {
        var stream = SHA256.Stream()
        var rest = count
        while rest > 0 {
            if inbox.isEmpty { try receive() }
            let piece = Array(inbox.prefix(rest))
            inbox.removeFirst(piece.count)
            stream.update(piece.span)
            rest -= piece.count
        }
        return stream.digest()
    }
}

/// What the process holds in memory.
enum ResidentMemory {
    /// In bytes; 0 where the system does not say. Under a sanitizer, what is allocated: what is
    /// resident is its own too, and with AddressSanitizer up to 256 MiB that were freed
    /// (`quarantine_size_mb`).
    static var bytes: Int { allocated?() ?? resident }

    /// By how many bytes the process is larger after the closure: the least of three attempts,
    /// since other suites may run beside it.
    static func growth(below most: Int, _ body: () throws -> Void) rethrows -> Int {
        // What others give back would hide what is taken here.
        HostedGateway.awaitEnds()
        var least = Int.max
        for _ in 0..<3 {
            guard least >= most else { break }
            let before = bytes
            try body()
            least = min(least, bytes - before)
        }
        return least
    }

    /// The sanitizer's answer (sanitizer/allocator_interface.h); `nil` without one.
    private static let allocated: (@convention(c) () -> Int)? =
        dlsym(nil, "__sanitizer_get_current_allocated_bytes").map {
            // The header declares it as `size_t (void)`.
            unsafeBitCast($0, to: (@convention(c) () -> Int).self)
        }

    private static var resident: Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
        let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
        let words = text.split(separator: " ")
        return words.count > 1 ? (Int(words[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
    }
}
