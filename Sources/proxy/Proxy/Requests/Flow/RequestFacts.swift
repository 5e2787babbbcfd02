import HTTPWire

/// The facts of a request: read once from its head, and never changed.
struct RequestFacts: Equatable, Sendable {
    /// What a head asks for beyond its method.
    struct Demands: OptionSet, Sendable {
        let rawValue: UInt8

        init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The client wants to switch to WebSocket. No other protocol is allowed: after a switch to
        /// `h2c` the client could send requests that the gateway does not judge.
        static let upgrade = Demands(rawValue: 1)
        /// The head authenticates the connection to the origin (NTLM, Negotiate). Then no other
        /// client may use the connection.
        static let authentication = Demands(rawValue: 2)
        /// The origin may leave the content unread and take it for another request. So this request
        /// is the last on its connection.
        static let isolation = Demands(rawValue: 4)
        /// The client accepts trailers (RFC 9110 §10.1.4).
        static let trailers = Demands(rawValue: 8)
    }

    let method: Method
    /// How the content is delimited.
    let framing: BodyFraming
    let demands: Demands
    /// Which kind of gRPC call it is; `nil` for any other request.
    let grpc: GRPCForm?

    init(
        _ method: Method,
        _ framing: BodyFraming = .none,
        asking demands: Demands = [],
        grpc: GRPCForm? = nil
    ) {
        self.method = method
        self.framing = framing
        self.demands = demands
        self.grpc = grpc
    }

    /// The facts of a head that can't be read.
    static let malformed = RequestFacts(.other)

    /// - bytes: the bytes that the head was read from.
    /// - isPooled: whether connections to origins carry more than one request.
    /// - isQuestion: another proxy asks by it. That proxy reads the status of the answer, and
    ///   gRPC's form of a refusal has the status 200.
    init(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        isPooled: Bool,
        isQuestion: Bool = false
    ) {
        var demands: Demands = []
        let framing = head.framing
        if framing.hasContent, !(head.method.usuallyHasContent && isPooled) {
            demands.insert(.isolation)
        } else if head.asksForWebSocket(bytes) {
            demands.insert(.upgrade)
        }
        if head.fields.authenticatesConnection(bytes) { demands.insert(.authentication) }
        if head.acceptsTrailers(bytes) { demands.insert(.trailers) }
        let grpc = isQuestion ? nil : head.grpcForm(bytes)
        self.init(head.method, framing, asking: demands, grpc: grpc)
    }

    func asks(_ demand: Demands) -> Bool { demands.contains(demand) }

    /// Whether content follows the head.
    var hasContent: Bool { framing.hasContent }
}

/// The meaning of a response's head for the connections.
enum ResponseKind: Equatable, Sendable {
    /// 101: both connections become a tunnel.
    case switching
    /// The response: whether its head leaves the origin's connection free for other clients, and
    /// what happens to trailers.
    case final(OriginReuse, Trailers = .end)

    /// - bytes: the bytes that the head was read from.
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

/// What happens to the trailers of a response.
enum Trailers: Equatable, Sendable {
    /// The client gets them.
    case pass
    case end
}

/// Whether the connection to the origin may carry another request.
enum OriginReuse: Equatable, Sendable { case keeps, drops }
