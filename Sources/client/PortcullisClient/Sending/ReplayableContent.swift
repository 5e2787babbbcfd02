import Crypto
import Dispatch
public import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request's content, ready to be sent more than once, and its digest.
///
/// A file or a stream is read in pieces of ``pieceBytes``, so that one piece of it is in memory.
struct ReplayableContent: Sendable {
    let content: RequestContent
    /// SHA-256, 32 bytes; of zero bytes where there is no content.
    let digest: [UInt8]
    /// The caller's file, as it was when it was read.
    private let mark: FileMark?
    /// The file that was made for a stream. It is deleted with the last copy of this.
    private let file: TemporaryFile?

    /// How much is read at a time.
    private static let pieceBytes = 256 << 10

    static let none = ReplayableContent(content: .none, digest: SHA256.hash(data: Data()))

    var isEmpty: Bool { content == .none }

    private init(
        content: RequestContent,
        digest: SHA256.Digest,
        mark: FileMark? = nil,
        file: TemporaryFile? = nil
    ) {
        (self.content, self.digest) = (content, Array(digest))
        (self.mark, self.file) = (mark, file)
    }

    /// Content in memory.
    init(_ data: Data) {
        let content: RequestContent = data.isEmpty ? .none : .data(data)
        self.init(content: content, digest: SHA256.hash(data: data))
    }

    /// The content of a request. A stream is put into a file.
    ///
    /// - Throws: ``PortcullisError/contentUnreadable`` or ``PortcullisError/contentTooLarge``;
    ///   `CancellationError`.
    init(of request: URLRequest, spooledMax: Int) async throws {
        if request.httpBodyStream != nil {
            try await self.init(spooling: request, atMost: spooledMax)
        } else {
            self.init(request.httpBody ?? Data())
        }
    }

    /// Content that comes in pieces. What does not fit into one piece of ours is put into a file.
    ///
    /// - Throws: what the pieces throw; ``PortcullisError/contentUnreadable`` or
    ///   ``PortcullisError/contentTooLarge``; `CancellationError`.
    init<Pieces: AsyncSequence>(
        pieces: Pieces,
        spooledMax limit: Int
    ) async throws where Pieces.Element == Data {
        let work = BlockingWork()
        var hash = SHA256()
        var (head, count) = (Data(), 0)
        var file: TemporaryFile?
        for try await piece in pieces {
            count += piece.count
            guard count <= limit else { throw PortcullisError.contentTooLarge }
            hash.update(data: piece)
            if let file {
                try await work.step { try file.append(piece) }
            } else if count <= Self.pieceBytes {
                head.append(piece)
            } else {
                let start = head + piece
                file = try await work.step {
                    let file = try TemporaryFile()
                    try file.append(start)
                    return file
                }
            }
        }
        try file?.end()
        let content: RequestContent =
            file.map { .file($0.url) } ?? (head.isEmpty ? .none : .data(head))
        self.init(content: content, digest: hash.finalize(), file: file)
    }

    /// A file's content.
    ///
    /// - Throws: ``PortcullisError/contentUnreadable``, or ``PortcullisError/contentChanged`` where
    ///   it was written to meanwhile; `CancellationError`.
    init(file url: URL) async throws {
        let work = BlockingWork()
        let (handle, mark) = try await work.step {
            let mark = try FileMark(url)
            guard let handle = try? FileHandle(forReadingFrom: url) else {
                throw PortcullisError.contentUnreadable
            }
            return (handle, mark)
        }
        defer { try? handle.close() }
        var hash = SHA256()
        while true {
            let piece = try await work.step {
                do {
                    return try handle.read(upToCount: Self.pieceBytes) ?? Data()
                } catch {
                    throw PortcullisError.contentUnreadable
                }
            }
            if piece.isEmpty { break }
            hash.update(data: piece)
        }
        self.init(content: .file(url), digest: hash.finalize(), mark: mark)
        try checkUnchanged()
    }

    /// Looks whether a file is still the one that was hashed.
    ///
    /// - Throws: ``PortcullisError/contentChanged``, or ``PortcullisError/contentUnreadable`` where
    ///   it is gone.
    func checkUnchanged() throws {
        guard let mark, case .file(let url) = content else { return }
        guard try FileMark(url) == mark else { throw PortcullisError.contentChanged }
    }

    private init(spooling request: URLRequest, atMost limit: Int) async throws {
        let work = BlockingWork()
        let file = try await work.step {
            request.httpBodyStream?.open()
            return try TemporaryFile()
        }
        defer { request.httpBodyStream?.close() }
        var hash = SHA256()
        var count = 0
        while true {
            let piece = try await work.step {
                let piece = try Self.piece(of: request)
                try file.append(piece)
                return piece
            }
            if piece.isEmpty { break }
            count += piece.count
            guard count <= limit else { throw PortcullisError.contentTooLarge }
            hash.update(data: piece)
        }
        try file.end()
        self.init(content: .file(file.url), digest: hash.finalize(), file: file)
    }

    /// The next piece of a request's stream; empty at its end.
    private static func piece(of request: URLRequest) throws -> Data {
        guard let stream = request.httpBodyStream else { return Data() }
        var bytes = [UInt8](repeating: 0, count: pieceBytes)
        let read = stream.read(&bytes, maxLength: bytes.count)
        guard read >= 0 else { throw PortcullisError.contentUnreadable }
        return Data(bytes[..<read])
    }
}

extension ReplayableContent: Codable {
    private enum Key: String, CodingKey { case data, file, digest, mark }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        digest = Array(try values.decode(Data.self, forKey: .digest))
        mark = try values.decodeIfPresent(FileMark.self, forKey: .mark)
        file = nil
        if let url = try values.decodeIfPresent(URL.self, forKey: .file) {
            content = .file(url)
        } else {
            let data = try values.decodeIfPresent(Data.self, forKey: .data)
            content = data.map(RequestContent.data) ?? .none
        }
    }

    /// - Throws: ``PortcullisError/contentUnreadable`` for a stream's file, which goes with this
    ///   process.
    func encode(to encoder: any Encoder) throws {
        guard file == nil else { throw PortcullisError.contentUnreadable }
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(Data(digest), forKey: .digest)
        try values.encodeIfPresent(mark, forKey: .mark)
        switch content {
        case .none: break
        case .data(let data): try values.encode(data, forKey: .data)
        case .file(let url): try values.encode(url.absoluteURL, forKey: .file)
        }
    }
}

/// By what a file is known to be the same as before: which file it is, its size, and when it was
/// written last.
struct FileMark: Hashable, Sendable, Codable {
    private let number: Int?
    private let size: UInt64?
    /// In seconds since 2001, by its bits: no encoding may round it.
    private let written: UInt64?

    /// - Throws: ``PortcullisError/contentUnreadable``.
    init(_ file: URL) throws {
        // The attributes of a symbolic link would be those of the link.
        let path = file.resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw PortcullisError.contentUnreadable
        }
        number = (attributes[.systemFileNumber] as? NSNumber)?.intValue
        size = (attributes[.size] as? NSNumber)?.uint64Value
        let date = attributes[.modificationDate] as? Date
        written = date?.timeIntervalSinceReferenceDate.bitPattern
    }
}

/// The content of a request, in a form that can be sent again.
///
/// Frozen: each transport has to send all of its cases.
@frozen
public enum RequestContent: Hashable, Sendable {
    /// No content.
    case none
    /// Content in memory.
    case data(Data)
    /// Content in a file, sent in pieces.
    case file(URL)
}

/// Runs what blocks, such as reading a file, on a thread of its own: the threads that Swift's tasks
/// share must not block. One step at a time, in order; a cancelled task begins no further step.
struct BlockingWork: Sendable {
    // The pool of each step is drained with it: Foundation's buffers would pile up else.
    private let queue = DispatchQueue(
        label: "portcullis.client.blocking",
        autoreleaseFrequency: .workItem
    )

    func step<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws
        -> Result
    {
        try Task.checkCancellation()
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result(catching: body)) }
        }
    }
}
