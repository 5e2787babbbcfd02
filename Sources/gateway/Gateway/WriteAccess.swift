import Glibc

/// Whether this process can write a file or into a folder, asked without writing anything.
enum WriteAccess {
    case granted
    /// The text says what can't be written, and why.
    case refused(String)

    /// A file that exists or can be made. `makesOthers`: files are made beside it, too.
    init(toFile path: String, makesOthers: Bool = false) {
        if Glibc.access(path, F_OK) == 0 {
            self.init(path, isFolder: false)
            guard makesOthers, case .granted = self else { return }
        }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        self.init(toFolder: folder)
    }

    /// A folder in which files are made.
    init(toFolder path: String) { self.init(path.isEmpty ? "." : path, isFolder: true) }

    private init(_ path: String, isFolder: Bool) {
        // As the effective user: access(2) asks for the real one.
        guard faccessat(AT_FDCWD, path, isFolder ? W_OK | X_OK : W_OK, AT_EACCESS) != 0 else {
            self = .granted
            return
        }
        let reason = String(cString: strerror(errno))
        self = .refused("\(path), which user \(geteuid()) can't write (\(reason))")
    }
}
