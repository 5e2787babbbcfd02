import CLinux
import Glibc

/// Whether the gateway can write a file or into a folder, checked without writing.
enum WriteAccess {
    case granted
    /// The text says what can't be written, and why.
    case refused(String)

    /// A file that exists or can be created. `makesOthers`: files are created beside it, too.
    ///
    /// - user: the user to which root changes before it writes; `nil` for the user of this process.
    init(toFile path: String, makesOthers: Bool = false, as user: ProcessUser?) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT != S_IFDIR else {
                self = .refused("\(path), which is a folder")
                return
            }
            self.init(path, mode: W_OK, as: user)
            guard makesOthers, case .granted = self else { return }
        }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        self.init(toFolder: folder, as: user)
    }

    /// A folder in which files are created.
    init(toFolder path: String, as user: ProcessUser?) {
        self.init(path.isEmpty ? "." : path, mode: W_OK | X_OK, as: user)
    }

    private init(_ path: String, mode: Int32, as user: ProcessUser?) {
        // With the effective user: access(2) uses the real one.
        let result =
            user.map { clinux_access_as($0.name, $0.uid, $0.gid, path, mode) }
            ?? faccessat(AT_FDCWD, path, mode, AT_EACCESS)
        guard result != 0 else {
            self = .granted
            return
        }
        let reason = String(cString: strerror(errno))
        self = .refused("\(path), which user \(user?.uid ?? geteuid()) can't write (\(reason))")
    }
}
