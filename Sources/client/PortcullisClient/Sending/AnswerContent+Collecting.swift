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

    /// The beginning of it, and all of it again. The beginning is as long as the first pieces that
    /// reach `length` together.
    func begun(upTo length: Int) async throws -> (beginning: Data, all: AnswerContent) {
        var beginning = Data()
        var iterator = makeAsyncIterator()
        while beginning.count < length, let piece = try await iterator.next() {
            beginning.append(piece)
        }
        let kept = Guarded<Data?>(beginning.isEmpty ? nil : beginning)
        let all = AnswerContent {
            let first = kept.withLock { kept in
                defer { kept = nil }
                return kept
            }
            if let first { return first }
            var rest = makeAsyncIterator()
            return try await rest.next()
        }
        return (beginning, all)
    }
}
