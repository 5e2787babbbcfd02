import Glibc

/// Reads a file as a whole, and replaces one so that it is always whole.
package enum WholeFile {
    /// Why it failed, for people.
    package struct Fault: Error {
        package let text: String

        package init(text: String) { self.text = text }
    }

    /// The content; `nil` where there is no such file.
    ///
    /// - bytesMax: a longer file is a fault.
    package static func read(_ path: String, bytesMax: Int) throws(Fault) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Fault(text: "a file that can't be read: \(lastError)")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= bytesMax
        else { throw Fault(text: "no regular file, or more than \(bytesMax) bytes") }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                // The rest is not empty, and inside the buffer.
                Glibc.read(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Fault(text: "a file that can't be read to its end") }
            done += count
        }
        return bytes
    }

    /// Replaces a file, or makes it, durably. Waits for the disk.
    package static func replace(_ path: String, by bytes: [UInt8]) throws(Fault) {
        let draft = path + ".new"
        unlink(draft)
        try write(bytes, to: draft, O_CREAT | O_EXCL)
        guard rename(draft, path) == 0 else {
            let error = lastError
            unlink(draft)
            throw Fault(text: "\(path) can't be replaced: \(error)")
        }
        try synchroniseFolder(of: path)
    }

    /// Writes a file durably.
    ///
    /// - flags: how it is opened, beside for writing.
    package static func write(_ bytes: [UInt8], to path: String, _ flags: Int32) throws(Fault) {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0o600)
        guard descriptor >= 0 else { throw Fault(text: "\(path) can't be written: \(lastError)") }
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                // The rest is not empty, and inside the buffer.
                Glibc.write(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Fault(text: "\(path) can't be written: \(lastError)") }
            done += count
        }
        guard fsync(descriptor) == 0 else {
            throw Fault(text: "\(path) can't be brought to disk: \(lastError)")
        }
    }

    /// Makes the new name survive a power cut.
    private static func synchroniseFolder(of path: String) throws(Fault) {
        let folder = folder(of: path)
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Fault(text: "\(folder): \(lastError)") }
        // Where a folder can't be synchronised, the file system does it by itself or not at all.
        _ = fsync(descriptor)
        close(descriptor)
    }

    /// The folder that a file is in.
    package static func folder(of path: String) -> String {
        let slash = path.lastIndex(of: "/")
        return slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }

    /// The system's words for the last failure.
    package static var lastError: String { String(cString: strerror(errno)) }
}
