internal import DeviceKey
internal import Glibc

/// Keys of one transaction of SQLite: enough that neighbours in an index share a page, few enough
/// that a gateway's commits wait some hundred milliseconds at most.
private let pieceCount = 20_000

/// A line of the file that has a key.
private struct NumberedKey {
    let line: Int
    let record: KeyRecord
}

extension KeyArchive {
    /// Imports keys from lines of JSON, see ``KeyLine``.
    ///
    /// The file is read twice. The first pass compares every line with the stored keys. If there is
    /// a problem, nothing is imported, unless `skipsProblems`. The second pass writes the lines, in
    /// transactions of some thousand. If the store fails in between, or another command interferes,
    /// run the import again: it is idempotent.
    ///
    /// A key that is already stored keeps its state: its counter is only raised, and it stays
    /// revoked. A line with another public key, app or environment is a problem.
    ///
    /// - `path`: a file, or `-` for standard input.
    /// - `apps`: App IDs that may be imported; `nil` for any.
    /// - `skipsProblems`: import the lines without a problem.
    /// - `note`: of the stored keys that another store has erased.
    package func importLines(
        from path: String,
        apps: Set<String>? = nil,
        skipsProblems: Bool = false,
        _ note: ChangeNote = ChangeNote(now: 0)
    ) throws(StoreProblem) -> ImportReport {
        let file = try LineFile(path: path)
        var report = ImportReport()
        // A line may be of a deleted key, which is not counted.
        var all = KeyFilter()
        all.deleted = .included
        let isEmpty = try scan(all, after: nil, limit: 1).records.isEmpty
        try keys(of: file, apps: apps, &report) { (keys, report) throws(StoreProblem) in
            // Of an erased key there is nothing to compare.
            let keys = keys.filter { !$0.record.isErased }
            for key in keys where KeyID(of: key.record.publicKey) != key.record.keyID {
                report.strayCount += 1
            }
            guard !isEmpty else { return }
            let stored = try identities(of: keys.map(\.record.keyID))
            for key in keys {
                if let text = stored[key.record.keyID]?.difference(from: key.record) {
                    report.add(text, line: key.line)
                }
            }
        }
        guard report.problemCount == 0 || skipsProblems else { return report }
        var written = ImportReport()
        written.strayCount = report.strayCount
        written.isImported = true
        try keys(of: file, apps: apps, &written) { (keys, written) throws(StoreProblem) in
            for (key, outcome) in zip(keys, try store(keys.map(\.record))) {
                if key.record.isErased {
                    written.marks += 1
                    continue
                }
                switch outcome {
                case .inserted: written.inserted += 1
                case .merged: written.merged += 1
                case .differs(let stored):
                    // The key was earlier in this file, or another command has stored it.
                    let text = stored.difference(from: key.record)
                    written.add(text ?? "the key is stored already", line: key.line)
                }
            }
        }
        if written.marks > 0 {
            try deleteMarked(note)
            _ = try eraseDeleted()
        }
        return written
    }

    /// Reads the lines in pieces; unreadable lines go into the report.
    private func keys(
        of file: LineFile,
        apps: Set<String>?,
        _ report: inout ImportReport,
        _ body: ([NumberedKey], inout ImportReport) throws(StoreProblem) -> Void
    ) throws(StoreProblem) {
        var keys: [NumberedKey] = []
        try file.forEachLine { (number, bytes) throws(StoreProblem) in
            report.lines += 1
            do throws(KeyLine.Problem) {
                let record = try KeyLine.record(bytes)
                if let apps, !record.isErased, !apps.contains(record.appID) {
                    throw KeyLine.Problem("app_id: \(record.appID) is not in the configuration")
                }
                keys.append(NumberedKey(line: number, record: record))
            } catch {
                report.add(error.text, line: number)
            }
            if keys.count == pieceCount {
                try body(keys, &report)
                keys.removeAll(keepingCapacity: true)
            }
        }
        if !keys.isEmpty { try body(keys, &report) }
    }
}

/// The result of an import, or why it changed nothing.
package struct ImportReport: Sendable {
    /// A line that was not imported.
    package struct Problem: Hashable, Sendable, CustomStringConvertible {
        /// Counted from 1.
        package let line: Int
        package let text: String

        package var description: String { "line \(line): \(text)" }
    }

    /// The most problems that are listed; further ones are only counted.
    package static let problemsMax = 1_000

    /// Lines that are not empty.
    package internal(set) var lines = 0
    /// Keys that were new.
    package internal(set) var inserted = 0
    /// Keys that were stored before; their counter may have been raised.
    package internal(set) var merged = 0
    /// Marks of keys that another store has erased.
    package internal(set) var marks = 0
    /// The first ``problemsMax`` problems, in the order of the lines.
    package private(set) var problems: [Problem] = []
    package private(set) var problemCount = 0
    /// Key ids that are not the SHA-256 of their public key.
    package internal(set) var strayCount = 0
    /// Whether the import has written anything.
    package internal(set) var isImported = false

    init() {}

    mutating func add(_ text: String, line: Int) {
        problemCount += 1
        if problems.count < Self.problemsMax { problems.append(Problem(line: line, text: text)) }
    }

    /// Facts for the operator that did not stop the import.
    package var warnings: [String] {
        guard strayCount > 0 else { return [] }
        return [
            "\(strayCount) key ids are not the SHA-256 of their public key: no device will ever "
                + "match them"
        ]
    }
}

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
            at: path,
            "can't be read: \(lastError)",
            next: "give a file of lines that this user may read, or - for standard input"
        )
    }

    /// The problem by `errno` of the copy.
    private static func unwritable(_ what: String) -> StoreProblem {
        StoreProblem(
            .unusable,
            at: "/tmp",
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
