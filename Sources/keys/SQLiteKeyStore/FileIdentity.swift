internal import Glibc

/// Which file something is: its device and inode.
///
/// As long as a process has a file open, no other file has its identity.
struct FileIdentity: Equatable, Sendable, CustomStringConvertible {
    let device: UInt64
    let inode: UInt64
    /// Bytes of the file when it was looked at; no part of the identity.
    let length: Int64

    /// The file at a path, symbolic links not followed; `nil` when there is none.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The file of a descriptor.
    init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
        length = Int64(status.st_size)
    }

    /// Reads ``description``.
    init?(text: some StringProtocol) {
        let words = text.split(separator: ":")
        guard words.count == 2, let device = UInt64(words[0]), let inode = UInt64(words[1]) else {
            return nil
        }
        self.device = device
        self.inode = inode
        length = 0
    }

    static func == (left: Self, right: Self) -> Bool {
        left.device == right.device && left.inode == right.inode
    }

    var description: String { "\(device):\(inode)" }
}
