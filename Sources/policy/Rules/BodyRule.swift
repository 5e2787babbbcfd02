/// How the content of a request takes part in the verdict.
package enum BodyRule: Hashable, Sendable {
    /// Not signed; streamed as it comes.
    case none
    /// Held until it was hashed and judged: up to `memory` bytes in memory, then in a file. The
    /// origin sees nothing of the request before. At most `limit` bytes.
    case held(limit: ByteCount, memory: ByteCount)
    /// The head carries the digest and is judged alone. The content streams and is compared with
    /// the digest, and its last bytes are withheld until they agree; otherwise the origin's
    /// connection is reset. Safe only where the origin discards incomplete requests. At most
    /// `limit` bytes.
    case streamed(limit: ByteCount)

    /// The most bytes of content; `nil` for no limit.
    package var limit: ByteCount? {
        switch self {
        case .none: nil
        case .held(let limit, _): limit
        case .streamed(let limit): limit
        }
    }
}
