import Foundation

/// A file of this process that is deleted with its last owner, unless it was handed over.
final class TemporaryFile: AnswerSink {
    private enum State {
        case written(FileHandle)
        case ended
        /// Others own it.
        case handedOver
    }

    let url: URL
    private let state: Guarded<State>

    /// How much is read at a time.
    private static let pieceBytes = 256 << 10

    init() throws {
        let name = "portcullis-\(UUID().uuidString)"
        url = FileManager.default.temporaryDirectory.appending(path: name)
        // No other user reads what an app uploads.
        let isMade = FileManager.default.createFile(
            atPath: url.path,
            contents: nil,
            attributes: [.posixPermissions: 0o600]
        )
        guard isMade, let handle = try? FileHandle(forWritingTo: url) else {
            throw PortcullisError.contentUnreadable
        }
        state = Guarded(.written(handle))
    }

    deinit {
        try? end()
        if case .handedOver = state.withLock({ $0 }) { return }
        try? FileManager.default.removeItem(at: url)
    }

    func append(_ piece: Data) throws {
        do {
            try state.withLock { state in
                if case .written(let handle) = state { try handle.write(contentsOf: piece) }
            }
        } catch {
            throw PortcullisError.contentUnreadable
        }
    }

    /// What was written from a place on: at most ``pieceBytes``, none at the end.
    func piece(at offset: Int) throws -> Data {
        do {
            let handle = try FileHandle(forReadingFrom: url)
            defer { try? handle.close() }
            try handle.seek(toOffset: UInt64(offset))
            return try handle.read(upToCount: Self.pieceBytes) ?? Data()
        } catch {
            throw PortcullisError.contentUnreadable
        }
    }

    /// Nothing more is written.
    func end() throws {
        do {
            try state.withLock { state in
                guard case .written(let handle) = state else { return }
                state = .ended
                try handle.close()
            }
        } catch {
            throw PortcullisError.contentUnreadable
        }
    }

    /// Ends it and leaves it to the caller.
    func handOver() throws -> URL {
        try end()
        state.withLock { $0 = .handedOver }
        return url
    }
}
