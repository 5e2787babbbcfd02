import Foundation

/// A file of this process that is deleted when nobody has it any more.
final class TemporaryFile: Sendable {
    let url: URL
    private let handle: Guarded<FileHandle?>

    init() throws {
        let name = "portcullis-\(UUID().uuidString)"
        url = FileManager.default.temporaryDirectory.appending(path: name)
        // Nobody else reads what an app uploads.
        let isMade = FileManager.default.createFile(
            atPath: url.path,
            contents: nil,
            attributes: [.posixPermissions: 0o600]
        )
        guard isMade, let handle = try? FileHandle(forWritingTo: url) else {
            throw PortcullisError.contentUnreadable
        }
        self.handle = Guarded(handle)
    }

    deinit {
        try? handle.withLock { try $0?.close() }
        try? FileManager.default.removeItem(at: url)
    }

    func append(_ piece: Data) throws {
        do {
            try handle.withLock { try $0?.write(contentsOf: piece) }
        } catch {
            throw PortcullisError.contentUnreadable
        }
    }

    /// Nothing more is written.
    func end() throws {
        do {
            try handle.withLock { handle in
                try handle?.close()
                handle = nil
            }
        } catch {
            throw PortcullisError.contentUnreadable
        }
    }
}
