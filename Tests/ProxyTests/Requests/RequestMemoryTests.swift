import Expectations
import Testing

@testable import Proxy

/// The memory that each request allocates.
@Suite struct RequestMemoryTests {
    /// The largest request for memory that glibc's malloc serves from its cache for each thread
    /// (tcache). A larger one costs it hundreds of instructions more, and so does its release.
    private static let cachedBytesMax = 1032

    /// The size of a class's objects, from its metadata (docs/ABI/TypeMetadata.rst of Swift: after
    /// kind, superclass, flags and address point, on systems without Objective-C).
    private static func objectSize(of type: AnyClass) -> Int {
        // The metadata of a class lives as long as the process.
        let metadata = unsafeBitCast(type, to: UnsafeRawPointer.self)
        return Int(metadata.load(fromByteOffset: 24, as: UInt32.self))
    }

    private final class Known {
        let first: UInt64 = 1
        let second: UInt64 = 2
    }

    @Test func `the state of a request comes from malloc's cache`() {
        // The object's header, and two words: where the size is, is known.
        expectEqual(Self.objectSize(of: Known.self), 32)
        #expect(Self.objectSize(of: Exchange.self) <= Self.cachedBytesMax)
        #expect(Self.objectSize(of: HTTP1Stream.self) <= Self.cachedBytesMax)
    }
}
