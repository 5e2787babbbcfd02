import Foundation
import Glibc

/// The path by which this process's program was started, and the file that it was then.
///
/// An upgrade starts what is at this path by then. `/proc/self/exe` is no such path: it follows a
/// file that is renamed, and has links resolved, so that it leads to the old program after
/// `mv portcullis portcullis-old`, and after a link to another version.
struct OwnProgram: Sendable {
    /// What tells a file from its successor at the same path.
    struct File: Equatable, Sendable {
        private let device: UInt64
        private let inode: UInt64

        /// `nil` where there is no such file.
        init?(_ path: String) {
            var facts = stat()
            guard stat(path, &facts) == 0 else { return nil }
            (device, inode) = (UInt64(facts.st_dev), UInt64(facts.st_ino))
        }
    }

    /// Absolute; links in it are as they were written.
    let path: String
    /// The file that runs; `nil` where the system does not say.
    let file: File?

    /// This process's program. Made at the start, before a folder or a file changes.
    static let current = OwnProgram(
        CommandLine.arguments.first ?? "",
        folder: FileManager.default.currentDirectoryPath,
        search: getenv("PATH").map { String(cString: $0) } ?? ""
    )

    /// - Parameters:
    ///   - name: the word by which it was started: a path, or a name that the shell found.
    ///   - folder: the folder from which a relative path counts.
    ///   - search: the folders in which a name is looked for, as PATH has them.
    ///   - running: a link to the file that runs.
    init(_ name: String, folder: String, search: String, running: String = "/proc/self/exe") {
        let file = File(running)
        let folders =
            name.contains("/")
            ? [""] : search.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        let paths = folders.map { place in
            let path = place.isEmpty ? name : "\(place)/\(name)"
            return path.hasPrefix("/") ? path : "\(folder)/\(path)"
        }
        // The word may be any: only a path that leads to this program is one of it.
        path =
            paths.first { file != nil && File($0) == file } ?? Self.target(of: running) ?? name
        self.file = file
    }

    /// The file's path as the system has it, without the suffix of a file that was deleted
    /// (proc(5)).
    private static func target(of link: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { buffer in
            // At most the buffer's count is written.
            buffer.withMemoryRebound(to: CChar.self) {
                $0.baseAddress.map { readlink(link, $0, buffer.count) } ?? -1
            }
        }
        guard count > 0 else { return nil }
        let path = String(decoding: bytes.prefix(count), as: UTF8.self)
        let gone = " (deleted)"
        return path.hasSuffix(gone) ? String(path.dropLast(gone.count)) : path
    }
}
