internal import Glibc

/// A text file that is read line by line, more than once.
///
/// An input that can't be read twice, such as a pipe, is first copied to a temporary file without a
/// name.
final class LineFile {
    private static let chunkCount = 1 << 18

    private let descriptor: Int32
    private let path: String

    /// - `path`: `-` stands for standard input.
    init(path: String) throws(StoreProblem) {
        let input = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw Self.unreadable(path) }
        self.path = path
        guard lseek(input, 0, SEEK_SET) < 0 else {
            descriptor = input
            return
        }
        defer { close(input) }
        descriptor = try Self.copy(of: input, path)
    }

    deinit { close(descriptor) }

    private static var lastError: String { String(cString: strerror(errno)) }

    /// The problem by `errno` of the file of lines, which is none of the store's.
    private static func unreadable(_ path: String) -> StoreProblem {
        StoreProblem(
            .unusable,
            path,
            "can't be read: \(lastError)",
            next: "give a file of lines that this user may read, or - for standard input"
        )
    }

    /// The problem by `errno` of the copy.
    private static func unwritable(_ what: String) -> StoreProblem {
        StoreProblem(
            .unusable,
            "/tmp",
            "\(what): \(lastError)",
            next: "make room there, or give a file in the place of the pipe"
        )
    }

    private static func copy(of input: Int32, _ path: String) throws(StoreProblem) -> Int32 {
        var name = Array("/tmp/portcullis-import-XXXXXX".utf8CString)
        let copy = mkstemp(&name)
        guard copy >= 0 else { throw unwritable("no temporary file") }
        unlink(name)
        do throws(StoreProblem) {
            try chunks(of: input, path) { (chunk) throws(StoreProblem) in
                var written = 0
                while written < chunk.count {
                    let rest = chunk.extracting(written...)
                    // The C border: pointer and count are of one buffer, which outlives the call.
                    let count = rest.withUnsafeBytes { write(copy, $0.baseAddress, $0.count) }
                    guard count > 0 else { throw unwritable("can't be written") }
                    written += count
                }
            }
        } catch {
            close(copy)
            throw error
        }
        return copy
    }

    private static func chunks(
        of descriptor: Int32,
        _ path: String,
        _ body: (Span<UInt8>) throws(StoreProblem) -> Void
    ) throws(StoreProblem) {
        var buffer = [UInt8](repeating: 0, count: chunkCount)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw unreadable(path)
            }
            try body(buffer.span.extracting(0..<count))
        }
    }

    /// Gives all lines from the first one on, with their numbers from 1 and without line feeds.
    /// Empty lines are skipped. Of a line that is too long, it gives one byte more than allowed.
    func forEachLine(
        _ body: (Int, Span<UInt8>) throws(StoreProblem) -> Void
    ) throws(StoreProblem) {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Self.unreadable(path) }
        var number = 1
        var partial: [UInt8] = []
        try Self.chunks(of: descriptor, path) { (chunk) throws(StoreProblem) in
            var start = 0
            for index in chunk.indices where chunk[index] == 0x0A {
                if partial.isEmpty {
                    if index > start { try body(number, chunk.extracting(start..<index)) }
                } else {
                    Self.append(chunk.extracting(start..<index), to: &partial)
                    try body(number, partial.span)
                    partial.removeAll(keepingCapacity: true)
                }
                number += 1
                start = index + 1
            }
            Self.append(chunk.extracting(start...), to: &partial)
        }
        if !partial.isEmpty { try body(number, partial.span) }
    }

    private static func append(_ bytes: Span<UInt8>, to line: inout [UInt8]) {
        for index in bytes.indices where line.count <= KeyLine.bytesMax {
            line.append(bytes[index])
        }
    }
}
