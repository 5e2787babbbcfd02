import Foundation

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
