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

    /// The finding, in the words of a problem.
    var found: String {
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
    /// The number of the file system on which a file or folder is.
    func device(of path: String) throws(FileFault) -> UInt64
    /// Whether a folder's files are in memory.
    func isInMemory(_ folder: String) -> Bool
    /// Whether nothing can be written in a folder, whoever writes.
    func isReadOnly(_ folder: String) -> Bool
}

extension ConfigurationFiles {
    package func device(of path: String) throws(FileFault) -> UInt64 { throw .missing }

    package func isInMemory(_ folder: String) -> Bool { false }

    package func isReadOnly(_ folder: String) -> Bool { false }
}

/// The files of this host: only this type of the module reads any.
package struct DiskFiles: ConfigurationFiles {
    package init() {}

    package func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        _ = try permissions(of: path)
        guard let file = FileHandle(forReadingAtPath: path) else { throw .notReadable }
        defer { try? file.close() }
        let data: Data
        do {
            // One byte more, to distinguish a file of exactly the limit from a larger one. At the
            // end of the file there is no data, which is no error: the file is empty.
            data = try file.read(upToCount: limit + 1) ?? Data()
        } catch {
            throw .notReadable
        }
        guard data.count <= limit else { throw .tooLarge }
        return [UInt8](data)
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
}
