import CLinux

/// A file without a name: nothing of it outlives its descriptor.
package enum UnnamedFile {
    /// Opens one for reading and writing, for the owner alone.
    ///
    /// - Throws: `SocketError` of open: no such folder, no room, a file system without O_TMPFILE.
    package static func open(in folder: String) throws(SocketError) -> Int32 {
        let descriptor = clinux_open_unnamed(folder)
        guard descriptor >= 0 else { throw SocketError("open(O_TMPFILE) in \(folder)") }
        return descriptor
    }
}
