/// How the content of a request takes part in the verdict.
package enum BodyRule: Hashable, Sendable {
    /// Not signed; streamed as it comes.
    case none
    /// The client declares a digest in the head; the content streams and is compared with it, and
    /// its last octets are withheld until they agree. At most `limit` octets.
    case declared(limit: ByteCount)
    /// Held until it was hashed and judged: up to `memory` octets in memory, then in a file.
    case held(limit: ByteCount, memory: ByteCount)

    /// The most octets of content; `nil` for no limit.
    package var limit: ByteCount? {
        switch self {
        case .none: nil
        case .declared(let limit): limit
        case .held(let limit, _): limit
        }
    }
}
