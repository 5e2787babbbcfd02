package import HTTPWire

/// What a response's head means for the connections.
package enum ResponseKind: Equatable, Sendable {
    /// 101: both connections become a tunnel.
    case switching
    /// The response: whether its head leaves the origin's connection free for other clients, and
    /// what becomes of trailers.
    case final(OriginReuse, Trailers = .end)

    /// - octets: those that the head was read from.
    package init(_ head: borrowing ResponseHead, _ octets: Span<UInt8>) {
        guard head.status != 101 else {
            self = .switching
            return
        }
        self = .final(
            head.fields.authenticatesConnection(octets) ? .drops : .keeps,
            head.fields.mayHaveTrailers ? .pass : .end
        )
    }
}

/// What becomes of the trailers of a response.
package enum Trailers: Equatable, Sendable {
    /// They are the client's.
    case pass
    /// They end here.
    case end
}

/// A response that has begun.
struct Response: Equatable {
    let reuse: OriginReuse
    let trailers: Trailers
}

/// Whether the connection to the origin may carry another request.
package enum OriginReuse: Equatable, Sendable { case keeps, drops }
