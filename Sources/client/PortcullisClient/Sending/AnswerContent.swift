public import Foundation

/// The content of an answer, in the pieces in which it comes. It can be read once.
public struct AnswerContent: AsyncSequence, Sendable {
    /// One piece, of any length above zero.
    public typealias Element = Data

    private let next: @Sendable () async throws -> Data?
    /// The file that it went into as it came; `nil` where it waits to be read.
    private let file: (@Sendable () async throws -> URL)?

    /// Content that a closure hands out piece by piece, `nil` at its end.
    public init(next: @escaping @Sendable () async throws -> Data?) {
        (self.next, file) = (next, nil)
    }

    /// Content that went into a file as it came.
    ///
    /// - file: hands the file over once all of it has come.
    init(
        next: @escaping @Sendable () async throws -> Data?,
        file: @escaping @Sendable () async throws -> URL
    ) {
        (self.next, self.file) = (next, file)
    }

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(next: next) }

    /// Reads piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let next: @Sendable () async throws -> Data?

        /// The next piece; `nil` at the end.
        public mutating func next() async throws -> Data? { try await next() }
    }
}

extension AnswerContent {
    /// All of it.
    ///
    /// - Throws: ``PortcullisError/answerTooLarge``, or what ended the content.
    func collected(atMost limit: Int) async throws -> Data {
        var data = Data()
        for try await piece in self {
            guard data.count + piece.count <= limit else { throw PortcullisError.answerTooLarge }
            data.append(piece)
        }
        return data
    }

    /// All of it, in a file that is the caller's.
    ///
    /// - Throws: as ``collected(atMost:)``; ``PortcullisError/contentUnreadable`` where the file
    ///   can't be written.
    func saved(atMost limit: Int) async throws -> URL {
        if let file { return try await file() }
        let work = BlockingWork()
        let file = try await work.step { try TemporaryFile() }
        var count = 0
        for try await piece in self {
            count += piece.count
            guard count <= limit else { throw PortcullisError.answerTooLarge }
            try await work.step { try file.append(piece) }
        }
        return try file.handOver()
    }
}
