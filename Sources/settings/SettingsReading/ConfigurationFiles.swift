import CLinux
import Foundation

/// Why a file could not be read.
package enum FileFault: Error, Hashable, Sendable {
    case missing
    case notReadable
    case notAFile
    case notAFolder
    /// More bytes than the limit.
    case tooLarge

    /// Whether the file may be right on another machine, or for another user.
    package var isAbsence: Bool { self == .missing || self == .notReadable }

    /// The finding, in the words of a problem.
    package var found: String {
        switch self {
        case .missing: "no such file"
        case .notReadable: "a file that may not be read"
        case .notAFile: "something that is no file"
        case .notAFolder: "something that is no folder"
        case .tooLarge: "too large a file"
        }
    }
}

/// The files that a configuration names. Tests use their own.
package protocol ConfigurationFiles {
    /// The bytes of a file, at most `limit`.
    func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8]
    /// The names in a folder, in no order.
    func names(in folder: String) throws(FileFault) -> [String]
    /// The permission bits of a file that can be read.
    func permissions(of path: String) throws(FileFault) -> UInt16
    /// Those of a folder; `nil` where they are not known.
    func permissions(ofFolder path: String) -> UInt16?
    /// The number of the file system on which a file or folder is.
    func device(of path: String) throws(FileFault) -> UInt64
    /// Whether a folder's files are in memory.
    func isInMemory(_ folder: String) -> Bool
    /// Whether nothing can be written in a folder, whoever writes.
    func isReadOnly(_ folder: String) -> Bool
    /// A variable of the environment; `nil` where it is not set.
    func variable(_ name: String) -> String?
}

extension ConfigurationFiles {
    package func permissions(ofFolder path: String) -> UInt16? { nil }

    package func device(of path: String) throws(FileFault) -> UInt64 { throw .missing }

    package func isInMemory(_ folder: String) -> Bool { false }

    package func isReadOnly(_ folder: String) -> Bool { false }

    package func variable(_ name: String) -> String? { nil }
}

/// The files of this host: only this type of the module reads any.
package struct DiskFiles: ConfigurationFiles {
    package init() {}

    package func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        _ = try permissions(of: path)
        // Without O_NONBLOCK, a pipe that has no writer would keep a reload waiting for ever.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .notReadable }
        defer { close(descriptor) }
        // One byte more, to distinguish a file of exactly the limit from a larger one.
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: min(limit + 1, 64 << 10))
        while bytes.count <= limit {
            let count = read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            // A pipe, as of a shell's `<(…)`, whose writer has written nothing yet.
            if count < 0, errno == EAGAIN, Self.isReady(descriptor) { continue }
            guard count >= 0 else { throw .notReadable }
            guard count > 0 else { break }
            bytes += part.prefix(count)
        }
        guard bytes.count <= limit else { throw .tooLarge }
        guard !bytes.isEmpty || Self.isRegular(descriptor) else { throw .notAFile }
        return bytes
    }

    /// The longest time that a part of a pipe's content is waited for, in milliseconds.
    private static let pipeTimeout: Int32 = 10_000

    private static func isReady(_ descriptor: Int32) -> Bool {
        var asked = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&asked, 1, pipeTimeout) > 0
    }

    private static func isRegular(_ descriptor: Int32) -> Bool {
        var facts = stat()
        return fstat(descriptor, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG
    }

    package func names(in folder: String) throws(FileFault) -> [String] {
        var isFolder: ObjCBool = false
        let path = folder.isEmpty ? "." : folder
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw .missing
        }
        guard isFolder.boolValue else { throw .notAFolder }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            throw .notReadable
        }
        return names
    }

    package func permissions(of path: String) throws(FileFault) -> UInt16 {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw .missing
        }
        guard !isFolder.boolValue else { throw .notAFile }
        guard FileManager.default.isReadableFile(atPath: path) else { throw .notReadable }
        // Attributes are those of a link itself, which always says 777; its target matters.
        let file = URL(filePath: path).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: file)
        let permissions = attributes?[.posixPermissions] as? NSNumber
        return permissions?.uint16Value ?? 0
    }

    package func permissions(ofFolder path: String) -> UInt16? {
        var facts = stat()
        guard stat(path.isEmpty ? "." : path, &facts) == 0 else { return nil }
        return UInt16(truncatingIfNeeded: facts.st_mode & 0o7777)
    }

    package func device(of path: String) throws(FileFault) -> UInt64 {
        // Foundation omits the number from a file's attributes.
        var facts = stat()
        guard stat(path.isEmpty ? "." : path, &facts) == 0 else { throw .missing }
        return UInt64(facts.st_dev)
    }

    package func isInMemory(_ folder: String) -> Bool {
        // tmpfs and ramfs, by their numbers in Linux's magic.h.
        [0x0102_1994, 0x8584_58F6].contains(clinux_file_system(folder.isEmpty ? "." : folder))
    }

    package func isReadOnly(_ folder: String) -> Bool {
        var facts = statvfs()
        // ST_RDONLY of statvfs(3): the file system, or the mount, as a container's own may be.
        return statvfs(folder.isEmpty ? "." : folder, &facts) == 0 && facts.f_flag & 1 != 0
    }

    package func variable(_ name: String) -> String? {
        // Nothing in the process changes its environment.
        getenv(name).map { String(cString: $0) }
    }
}

/// The permission bits of a file for strangers: users who are neither its owner nor in its group.
package struct FileMode {
    package let bits: UInt16

    package init(_ bits: UInt16) { self.bits = bits }

    /// In chmod's form: `640`.
    package var text: String { String(bits & 0o777, radix: 8) }

    package var isForStrangers: Bool { bits & 0o007 != 0 }
    package var isReadableByStrangers: Bool { bits & 0o004 != 0 }
    package var isWritableByStrangers: Bool { bits & 0o002 != 0 }
    package var isWritableByGroup: Bool { bits & 0o020 != 0 }
}

// Checks of the files on which verdicts depend, before anything is served. The operator chooses the
// group (Debian's ssl-cert reads keys); other users of the host need none of these files.
extension ProblemLog {
    /// A private key that strangers can read is no secret: refused, as in OpenSSH.
    package func check(key file: Located<String>, at path: String, _ mode: FileMode) {
        if mode.isForStrangers {
            let found = "a key with mode \(mode.text), open to every user of this host"
            error(file, found: found, use: "chmod o= \(path)")
        } else if mode.isWritableByGroup {
            let found = "a key with mode \(mode.text), which its group may replace"
            warning(file, found: found, use: "chmod g-w \(path)")
        }
    }

    /// A user who can write the store can admit keys; a user who can read it learns who uses the
    /// app.
    package func check(store file: Located<String>, at path: String, _ mode: FileMode) {
        if mode.isWritableByStrangers {
            let found = "\(path) with mode \(mode.text), so that every user here can admit keys"
            error(file, found: found, use: "chmod 600 \(path)")
        } else if mode.isReadableByStrangers {
            let found = "\(path) with mode \(mode.text), so that every user here can read the keys"
            warning(file, found: found, use: "chmod 600 \(path)")
        }
    }

    /// A user who can write rules can switch them off.
    package func check(rules path: String, _ mode: FileMode) {
        guard mode.isWritableByStrangers else { return }
        let found = "mode \(mode.text), so that every user here decides what is enforced"
        let place = Problem.Place(file: path, line: 1)
        warning(place, "", found: found, use: "chmod o-w \(path)")
    }

    /// A user who can write a folder can add a file to it, or put another one in a file's place.
    package func check(folder: Located<String>, _ mode: FileMode) {
        guard mode.isWritableByStrangers else { return }
        let found = "a folder with mode \(mode.text), to which every user here can add files"
        warning(folder, found: found, use: "chmod o-w \(folder.value)")
    }
}

// What `--offline` assumes of files.
extension ProblemLog {
    /// Whether a file that can't be read is assumed to be right. What is there and can be read is
    /// never assumed.
    package func assumes(_ file: some Placed, at path: String, _ fault: FileFault) -> Bool {
        fault.isAbsence && assumes(absent: file, .file, named: path)
    }

    /// The same for a folder.
    package func assumes(folder: Located<String>, _ fault: FileFault) -> Bool {
        fault.isAbsence && assumes(absent: folder, .folder, named: folder.value)
    }
}

/// What a PEM file holds, by its labels (RFC 7468 §2).
package struct PEMContent {
    /// The most bytes that are read: a chain and a key have a few thousand.
    private static let bytesMax = 1 << 20

    private let hasCertificate: Bool
    private let hasKey: Bool

    /// A file that can't be read, or is larger, holds nothing.
    package init(_ path: String, _ files: some ConfigurationFiles) {
        let bytes = try? files.contents(of: path, limit: Self.bytesMax)
        let lines = String(decoding: bytes ?? [], as: UTF8.self).split(whereSeparator: \.isNewline)
        let labels = lines.filter { $0.hasPrefix("-----BEGIN ") }
        hasCertificate = labels.contains { $0.contains("CERTIFICATE-----") }
        hasKey = labels.contains { $0.contains("PRIVATE KEY-----") }
    }

    package var isKeyAlone: Bool { hasKey && !hasCertificate }
    package var isCertificateAlone: Bool { hasCertificate && !hasKey }
}

/// Paths as texts.
package enum FilePath {
    /// The path, relative to the folder unless it is absolute.
    package static func joined(_ folder: String, _ path: String) -> String {
        if path.hasPrefix("/") || folder.isEmpty { return path }
        return folder.hasSuffix("/") ? folder + path : "\(folder)/\(path)"
    }

    /// The folder part; empty when there is none.
    package static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// The files that a configuration names, with the log of what is wrong with them.
package struct NamedFiles {
    /// The configuration's folder, from which relative paths count.
    package let folder: String
    package let disk: any ConfigurationFiles
    package let log: ProblemLog

    package init(folder: String, disk: any ConfigurationFiles, log: ProblemLog) {
        (self.folder, self.disk, self.log) = (folder, disk, log)
    }

    package func path(of file: Located<String>) -> String { FilePath.joined(folder, file.value) }

    /// The content of a file that others must not read; `nil`, with a problem, when there is none.
    ///
    /// - standIn: what takes its place where its absence is assumed.
    package func secret(
        _ file: Located<String>,
        limit: Int,
        use: String,
        _ standIn: StandIn
    ) -> [UInt8]? {
        let path = path(of: file)
        do throws(FileFault) {
            log.check(key: file, at: path, FileMode(try disk.permissions(of: path)))
            return try disk.contents(of: path, limit: limit)
        } catch {
            if log.assumes(file, at: path, error) { return standIn.bytes(for: path) }
            log.error(file, found: "\(error.found) (\(path))", use: use)
            return nil
        }
    }
}
