import HTTPWire

/// What a request is and asks: read from its head once, and never changed.
struct RequestFacts: Equatable, Sendable {
    /// What a head asks beyond its method.
    struct Demands: OptionSet, Sendable {
        let rawValue: UInt8

        init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The client would switch to WebSocket. To no other protocol: behind `h2c` the client
        /// would send requests that nobody judges.
        static let upgrade = Demands(rawValue: 1)
        /// The head authenticates the connection to the origin (NTLM, Negotiate), which then is
        /// for no other client.
        static let authentication = Demands(rawValue: 2)
        /// The origin may leave the content unread and take it for another request: its connection
        /// carries this request last.
        static let isolation = Demands(rawValue: 4)
        /// The client takes trailers (RFC 9110 §10.1.4).
        static let trailers = Demands(rawValue: 8)
    }

    let method: Method
    /// How the content is delimited.
    let framing: BodyFraming
    let demands: Demands

    init(_ method: Method, _ framing: BodyFraming = .none, _ demands: Demands = []) {
        self.method = method
        self.framing = framing
        self.demands = demands
    }

    /// Of a head that can't be read.
    static let malformed = RequestFacts(.other)

    /// - bytes: those that the head was read from.
    /// - isPooled: whether connections to origins carry more than one request.
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, isPooled: Bool) {
        var demands: Demands = []
        let framing = head.framing
        if Self.hasContent(framing), !(head.method.usuallyHasContent && isPooled) {
            demands.insert(.isolation)
        } else if head.asksForWebSocket(bytes) {
            demands.insert(.upgrade)
        }
        if head.fields.authenticatesConnection(bytes) { demands.insert(.authentication) }
        if head.acceptsTrailers(bytes) { demands.insert(.trailers) }
        self.init(head.method, framing, demands)
    }

    /// Whether the head asks for something.
    func asks(_ demand: Demands) -> Bool { demands.contains(demand) }

    /// Whether content follows the head.
    var hasContent: Bool { Self.hasContent(framing) }

    private static func hasContent(_ framing: BodyFraming) -> Bool {
        switch framing {
        case .none, .length(0): false
        case .length, .chunked, .untilClose: true
        }
    }
}

/// What a response's head means for the connections.
enum ResponseKind: Equatable, Sendable {
    /// 101: both connections become a tunnel.
    case switching
    /// The response: whether its head leaves the origin's connection free for other clients, and
    /// what becomes of trailers.
    case final(OriginReuse, Trailers = .end)

    /// - bytes: those that the head was read from.
    init(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) {
        guard head.status != 101 else {
            self = .switching
            return
        }
        self = .final(
            head.fields.authenticatesConnection(bytes) ? .drops : .keeps,
            head.fields.mayHaveTrailers ? .pass : .end
        )
    }
}

/// What becomes of the trailers of a response.
enum Trailers: Equatable, Sendable {
    /// They are the client's.
    case pass
    case end
}

/// Whether the connection to the origin may carry another request.
enum OriginReuse: Equatable, Sendable { case keeps, drops }
