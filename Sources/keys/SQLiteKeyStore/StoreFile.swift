internal import Glibc
internal import KeyStore

/// Files of the store: regular, and only for their owner.
enum StoreFile {
    /// The error of the last system call.
    static var lastError: String { String(cString: strerror(errno)) }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The last part of a path.
    static func name(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return path }
        return String(path[path.index(after: slash)...])
    }

    /// The path without symbolic links, so that all names of a database lead to one lock. For a
    /// missing file, the folder's path is resolved.
    static func resolved(_ path: String) -> String {
        if let whole = real(path) { return whole }
        guard let folder = real(folder(of: path)) else { return path }
        return (folder == "/" ? "" : folder) + "/" + name(of: path)
    }

    private static func real(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The problem by `errno` of a file that can't be created or written.
    static func lastProblem(_ path: String, _ what: String) -> StoreProblem {
        let reason: StoreProblem.Reason = [ENOSPC, EDQUOT].contains(errno) ? .full : .unusable
        return StoreProblem(reason, at: path, "\(what): \(lastError)")
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Opens a file for reading and writing, and creates a missing one with mode 0600. Refuses a
    /// file that is not regular.
    ///
    /// - Returns: the descriptor, which the caller closes.
    static func open(_ path: String) throws(StoreProblem) -> Int32 {
        let isNew = !exists(path)
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw lastProblem(path, "can't be opened") }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            Glibc.close(descriptor)
            throw StoreProblem(.unusable, at: path, "is not a regular file")
        }
        if isNew { giveToOwner(of: folder(of: path), descriptor) }
        return descriptor
    }

    /// Writes a short text at an offset.
    ///
    /// - Returns: whether all of it was written; if not, `errno` says why.
    static func write(_ text: String, to descriptor: Int32, at offset: off_t) -> Bool {
        let bytes = Array(text.utf8)
        let count = bytes.span.withUnsafeBytes { bytes in
            // The C border: pointer and count are of one buffer, which outlives the call.
            pwrite(descriptor, bytes.baseAddress, bytes.count, offset)
        }
        // A regular file accepts a part where there is no room for the rest (write(2)).
        if count >= 0, count < bytes.count { errno = ENOSPC }
        return count == bytes.count
    }

    /// Creates an empty file with mode 0600 unless there is one.
    ///
    /// It never opens an existing database: closing it again would release the locks that SQLite
    /// holds on it for this process.
    static func create(_ path: String) throws(StoreProblem) {
        guard !exists(path) else { return }
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor < 0, errno == EEXIST { return }
        guard descriptor >= 0 else { throw lastProblem(path, "can't be made") }
        giveToOwner(of: folder(of: path), descriptor)
        Glibc.close(descriptor)
    }

    /// Makes files that root creates usable for the gateway's user.
    private static func giveToOwner(of folder: String, _ descriptor: Int32) {
        var status = stat()
        guard geteuid() == 0, stat(folder, &status) == 0 else { return }
        // If it fails, the file stays root's; a process that can't open it then says so.
        _ = fchown(descriptor, status.st_uid, status.st_gid)
    }

    /// Gives a file that can't be opened, such as a socket, to the owner of its folder.
    static func giveToOwner(ofFolderOf path: String) {
        var status = stat()
        guard geteuid() == 0, stat(folder(of: path), &status) == 0 else { return }
        _ = lchown(path, status.st_uid, status.st_gid)
    }

    /// Makes a file's creation in its folder survive a power cut.
    static func synchroniseFolder(of path: String) {
        let folder = Glibc.open(folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        // Where a folder can't be synchronised, the file system does it by itself or not at all.
        _ = fsync(folder)
        Glibc.close(folder)
    }
}
