import Dispatch
import Glibc
import Synchronization

/// Writes lines of the access log on a queue of its own, so that a slow disk or pipe stops no lane.
///
/// Lines beyond ``pendingMax``, and lines that can't be written, are dropped and counted: a gateway
/// that stands still for its log would be worse.
package final class LogWriter: Sendable {
    /// Octets that wait to be written.
    private static let pendingMax = 8 << 20
    private static let lineFeed = UInt8(ascii: "\n")

    private let descriptor: Int32
    private let queue = DispatchQueue(label: "portcullis.log")
    private let pending = Atomic<Int>(0)
    private let droppedLines = Atomic<UInt64>(0)
    /// The file ends in the middle of a line. Touched on `queue` alone.
    private let isTorn = Atomic(false)

    /// Writes to standard output.
    package init() { descriptor = 1 }

    /// Appends to a file, made with mode 0640.
    package init(file: String) throws(GatewayError) {
        descriptor = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
        guard descriptor >= 0 else {
            throw GatewayError(
                "the access log \(file) can't be opened: \(String(cString: strerror(errno)))",
                hint: "Check log.access in the configuration and the folder's permissions."
            )
        }
    }

    /// Lines that were dropped, because the log could not keep up or could not be written.
    package var dropped: UInt64 { droppedLines.load(ordering: .relaxed) }

    /// Takes finished lines.
    package func write(_ lines: [UInt8]) {
        let (_, waiting) = pending.add(lines.count, ordering: .relaxed)
        guard waiting <= Self.pendingMax else {
            pending.subtract(lines.count, ordering: .relaxed)
            drop(lines[...])
            return
        }
        queue.async { [self] in
            flush(lines)
            pending.subtract(lines.count, ordering: .relaxed)
        }
    }

    /// Waits until everything taken so far is written, at the end of the process.
    package func drain() { queue.sync {} }

    private func flush(_ lines: [UInt8]) {
        // What was torn off must not run into the next line.
        if isTorn.load(ordering: .relaxed) {
            guard write(all: [Self.lineFeed]) == 1 else { return drop(lines[...]) }
            isTorn.store(false, ordering: .relaxed)
        }
        let written = write(all: lines)
        guard written < lines.count else { return }
        isTorn.store(written > 0 && lines[written - 1] != Self.lineFeed, ordering: .relaxed)
        drop(lines[written...])
    }

    /// Writes as much as can be written; how much of the octets has been.
    private func write(all octets: [UInt8]) -> Int {
        var written = 0
        while written < octets.count {
            // The pointer lives for the call; the rest is not empty.
            let count = octets.withUnsafeBytes { octets in
                Glibc.write(descriptor, octets[written...].baseAddress, octets.count - written)
            }
            if count > 0 {
                written += count
            } else if errno != EINTR {
                break
            }
        }
        return written
    }

    private func drop(_ lines: ArraySlice<UInt8>) {
        let count = lines.count { $0 == Self.lineFeed }
        droppedLines.add(UInt64(count), ordering: .relaxed)
    }
}

extension Slice where Base == UnsafeRawBufferPointer {
    /// Where the slice begins; `nil` when the buffer is empty.
    fileprivate var baseAddress: UnsafeRawPointer? { base.baseAddress.map { $0 + startIndex } }
}
