public import Foundation

/// The content of an answer, in the pieces in which it comes. It can be read once.
public struct AnswerContent: AsyncSequence, Sendable {
    /// One piece, of any length above zero.
    public typealias Element = Data

    private let next: @Sendable () async throws -> Data?

    /// Content that a closure hands out piece by piece, `nil` at its end.
    public init(next: @escaping @Sendable () async throws -> Data?) { self.next = next }

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(next: next) }

    /// Reads piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let next: @Sendable () async throws -> Data?

        /// The next piece; `nil` at the end.
        public mutating func next() async throws -> Data? { try await next() }
    }
}
