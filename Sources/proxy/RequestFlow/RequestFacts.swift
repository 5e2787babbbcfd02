package import HTTPWire

/// What a request is and asks: read from its head once, and never changed.
package struct RequestFacts: Equatable, Sendable {
    /// What a head asks beyond its method.
    package struct Demands: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The client would switch to WebSocket. To no other protocol: behind `h2c` the client
        /// would send requests that nobody judges.
        package static let upgrade = Demands(rawValue: 1)
        /// The head authenticates the connection to the origin (NTLM, Negotiate), which then is
        /// for no other client.
        package static let authentication = Demands(rawValue: 2)
        /// The origin may leave the content unread and take it for another request: its connection
        /// carries this request last.
        package static let isolation = Demands(rawValue: 4)
        /// The client takes trailers (RFC 9110 §10.1.4).
        package static let trailers = Demands(rawValue: 8)
    }

    package let method: Method
    /// How the content is delimited.
    package let framing: BodyFraming
    package let demands: Demands

    package init(_ method: Method, _ framing: BodyFraming = .none, _ demands: Demands = []) {
        self.method = method
        self.framing = framing
        self.demands = demands
    }

    /// Of a head that can't be read.
    package static let malformed = RequestFacts(.other)

    /// - octets: those that the head was read from.
    /// - isPooled: whether connections to origins carry more than one request.
    package init(_ head: borrowing RequestHead, _ octets: Span<UInt8>, isPooled: Bool) {
        var demands: Demands = []
        let framing = head.framing
        if Self.hasContent(framing), !(head.method.usuallyHasContent && isPooled) {
            demands.insert(.isolation)
        } else if head.asksForWebSocket(octets) {
            demands.insert(.upgrade)
        }
        if head.fields.authenticatesConnection(octets) { demands.insert(.authentication) }
        if head.acceptsTrailers(octets) { demands.insert(.trailers) }
        self.init(head.method, framing, demands)
    }

    /// Whether the head asks for something.
    package func asks(_ demand: Demands) -> Bool { demands.contains(demand) }

    /// Whether content follows the head.
    package var hasContent: Bool { Self.hasContent(framing) }

    private static func hasContent(_ framing: BodyFraming) -> Bool {
        switch framing {
        case .none, .length(0): false
        case .length, .chunked, .untilClose: true
        }
    }
}
