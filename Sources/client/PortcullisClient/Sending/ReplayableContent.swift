import Crypto
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request's content, ready to be sent more than once, and its digest.
struct ReplayableContent: Sendable {
    let content: RequestContent
    /// SHA-256, 32 bytes; of zero bytes where there is no content.
    let digest: [UInt8]
    /// The file that was made for a stream. It goes when nobody has this any more.
    private let file: TemporaryFile?

    /// How much is read at a time.
    private static let pieceBytes = 256 << 10

    static let none = ReplayableContent(
        content: .none,
        digest: Array(SHA256.hash(data: Data())),
        file: nil
    )

    var isEmpty: Bool { content == .none }

    private init(content: RequestContent, digest: [UInt8], file: TemporaryFile?) {
        (self.content, self.digest, self.file) = (content, digest, file)
    }

    /// The content of a request. A stream is put into a file.
    ///
    /// - Throws: ``PortcullisError/contentUnreadable`` or ``PortcullisError/contentTooLarge``.
    init(of request: URLRequest, spooledMax: Int) async throws {
        if let stream = request.httpBodyStream {
            try self.init(spooling: stream, atMost: spooledMax)
        } else if let data = request.httpBody, !data.isEmpty {
            self.init(
                content: .data(data),
                digest: Array(SHA256.hash(data: data)),
                file: nil
            )
        } else {
            self = .none
        }
    }

    /// A file's content, read in pieces.
    ///
    /// - Throws: ``PortcullisError/contentUnreadable``.
    init(file url: URL) async throws {
        guard let handle = try? FileHandle(forReadingFrom: url) else {
            throw PortcullisError.contentUnreadable
        }
        defer { try? handle.close() }
        var hash = SHA256()
        do {
            while let piece = try handle.read(upToCount: Self.pieceBytes), !piece.isEmpty {
                hash.update(data: piece)
            }
        } catch {
            throw PortcullisError.contentUnreadable
        }
        self.init(content: .file(url), digest: Array(hash.finalize()), file: nil)
    }

    private init(spooling stream: InputStream, atMost limit: Int) throws {
        let file = try TemporaryFile()
        var hash = SHA256()
        var count = 0
        var bytes = [UInt8](repeating: 0, count: Self.pieceBytes)
        stream.open()
        defer { stream.close() }
        while true {
            let read = stream.read(&bytes, maxLength: bytes.count)
            if read == 0 { break }
            guard read > 0 else { throw PortcullisError.contentUnreadable }
            count += read
            guard count <= limit else { throw PortcullisError.contentTooLarge }
            let piece = Data(bytes[..<read])
            hash.update(data: piece)
            try file.append(piece)
        }
        try file.end()
        self.init(content: .file(file.url), digest: Array(hash.finalize()), file: file)
    }
}
