/// The permission bits of a file for strangers: users who are neither its owner nor in its group.
struct FileMode {
    let bits: UInt16

    init(_ bits: UInt16) { self.bits = bits }

    /// In chmod's form: `640`.
    var text: String { String(bits & 0o777, radix: 8) }

    var isForStrangers: Bool { bits & 0o007 != 0 }
    var isReadableByStrangers: Bool { bits & 0o004 != 0 }
    var isWritableByStrangers: Bool { bits & 0o002 != 0 }
    var isWritableByGroup: Bool { bits & 0o020 != 0 }
}

// Checks of the files on which verdicts depend, before anything is served. The operator chooses the
// group (Debian's ssl-cert reads keys); other users of the host need none of these files.
extension ProblemLog {
    /// A private key that strangers can read is no secret: refused, as in OpenSSH.
    func check(key file: Located<String>, at path: String, _ mode: FileMode) {
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
    func check(store file: Located<String>, at path: String, _ mode: FileMode) {
        if mode.isWritableByStrangers {
            let found = "\(path) with mode \(mode.text), so that every user here can admit keys"
            error(file, found: found, use: "chmod 600 \(path)")
        } else if mode.isReadableByStrangers {
            let found = "\(path) with mode \(mode.text), so that every user here can read the keys"
            warning(file, found: found, use: "chmod 600 \(path)")
        }
    }

    /// A user who can write rules can switch them off.
    func check(rules path: String, _ mode: FileMode) {
        guard mode.isWritableByStrangers else { return }
        let found = "mode \(mode.text), so that every user here decides what is enforced"
        let place = Problem.Place(file: path, line: 1)
        warning(place, "", found: found, use: "chmod o-w \(path)")
    }
}

/// Paths as texts.
enum FilePath {
    /// The path, relative to the folder unless it is absolute.
    static func joined(_ folder: String, _ path: String) -> String {
        if path.hasPrefix("/") || folder.isEmpty { return path }
        return folder.hasSuffix("/") ? folder + path : "\(folder)/\(path)"
    }

    /// The folder part; empty when there is none.
    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// The files that a configuration names, with the log of what is wrong with them.
struct NamedFiles {
    /// The configuration's folder, from which relative paths count.
    let folder: String
    let disk: any ConfigurationFiles
    let log: ProblemLog

    func path(of file: Located<String>) -> String { FilePath.joined(folder, file.value) }

    /// The content of a file that others must not read; `nil`, with a problem, when there is none.
    func secret(_ file: Located<String>, limit: Int, use: String) -> [UInt8]? {
        let path = path(of: file)
        do throws(FileFault) {
            log.check(key: file, at: path, FileMode(try disk.permissions(of: path)))
            return try disk.contents(of: path, limit: limit)
        } catch {
            log.error(file, found: "\(error.found) (\(path))", use: use)
            return nil
        }
    }
}
