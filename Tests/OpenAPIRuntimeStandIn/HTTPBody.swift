// The names are documented by the library that they stand in for.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Foundation
import Synchronization

/// Content in pieces. A second reader of what can be read once ends the process, as with the
/// genuine one.
public final class HTTPBody: Sendable {
    public typealias ByteChunk = ArraySlice<UInt8>

    public enum IterationBehavior: Sendable {
        case single, multiple
    }

    public enum Length: Sendable, Equatable {
        case unknown
        case known(Int64)
    }

    public struct TooManyBytes: Error {
        public let maximum: Int
    }

    public let iterationBehavior: IterationBehavior
    public let length: Length
    private let read: @Sendable () -> Iterator
    private let wasRead = Mutex(false)

    private init(
        _ length: Length,
        _ behavior: IterationBehavior,
        read: @escaping @Sendable () -> Iterator
    ) {
        (self.length, iterationBehavior, self.read) = (length, behavior, read)
    }

    public convenience init() { self.init(ArraySlice()) }

    public convenience init(_ bytes: some Collection<UInt8> & Sendable) {
        self.init(ArraySlice(bytes), length: .known(Int64(bytes.count)))
    }

    public convenience init(_ bytes: ByteChunk, length: Length) {
        self.init(length, .multiple) {
            var rest = bytes.isEmpty ? [] : [bytes]
            return Iterator { rest.popLast() }
        }
    }

    public convenience init(_ string: some StringProtocol & Sendable) {
        self.init(Array(string.utf8))
    }

    public convenience init<Bytes: AsyncSequence>(
        _ sequence: Bytes,
        length: Length,
        iterationBehavior: IterationBehavior
    ) where Bytes: Sendable, Bytes.Element: Sequence & Sendable, Bytes.Element.Element == UInt8 {
        self.init(length, iterationBehavior) {
            var iterator = sequence.makeAsyncIterator()
            return Iterator { try await iterator.next().map { ArraySlice($0) } }
        }
    }
}

extension HTTPBody: AsyncSequence {
    public typealias Element = ByteChunk

    public struct Iterator: AsyncIteratorProtocol {
        private let take: () async throws -> ByteChunk?

        init(_ take: @escaping () async throws -> ByteChunk?) { self.take = take }

        public mutating func next() async throws -> ByteChunk? { try await take() }
    }

    public func makeAsyncIterator() -> Iterator {
        let isSecond = wasRead.withLock { value in
            defer { value = true }
            return value
        }
        precondition(iterationBehavior == .multiple || !isSecond, "HTTPBody is read a second time")
        return read()
    }
}

extension Data {
    public init(collecting body: HTTPBody, upTo maxBytes: Int) async throws {
        self.init()
        for try await piece in body {
            guard count + piece.count <= maxBytes else {
                throw HTTPBody.TooManyBytes(maximum: maxBytes)
            }
            append(contentsOf: piece)
        }
    }
}

extension String {
    public init(collecting body: HTTPBody, upTo maxBytes: Int) async throws {
        self = String(decoding: try await Data(collecting: body, upTo: maxBytes), as: UTF8.self)
    }
}
