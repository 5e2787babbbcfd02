package import HTTPWire
package import Lanes

/// Sends requests of the gateway's own: to see whether a server is well, to ask a service.
///
/// Lives on its lane's queue. Its servers are taken in turn as those of an origin are; one that
/// answers nobody is passed over while another does. A response is read whole, up to a limit.
package final class HTTPClient {
    /// What is asked of all calls.
    package struct Settings: Sendable {
        /// Milliseconds from the call to the end of the response.
        package var totalTimeout: UInt64 = 10_000
        /// Milliseconds without a byte of the response's content.
        package var idleTimeout: UInt64 = 10_000
        /// Bytes of a response's content.
        package var contentMax = 64 << 10
        /// Bounds of a response's head.
        package var head = HeadLimits()
        /// Interim (1xx) responses to one request.
        package var interimMax = 16
        /// Idle connections that are kept for the next calls; 0 for a new one each.
        package var idleMax = 0
        /// Milliseconds that they are kept.
        package var poolTime: UInt64 = 30_000

        package init() {}
    }

    package let lane: Lane
    let settings: Settings
    let limits: ResponseLimits
    private(set) var pool: OriginPool
    private let events: Events

    /// A client of servers. The origin's settings say how long a connect and the head of a response
    /// may take.
    package init(_ origin: OriginSettings, _ settings: Settings, on lane: Lane) {
        self.lane = lane
        self.settings = settings
        limits = ResponseLimits(head: settings.head, interimMax: settings.interimMax)
        events = Events()
        pool = OriginPool(origin, on: lane, host: events)
    }

    /// Its calls are no requests of clients, and not counted with them.
    private final class Events: OriginHost {
        let heads = HeadScratch()
        func note(_ event: OriginEvent) {}
    }

    /// Sends a request.
    ///
    /// - ended: called once, on the lane, maybe before this returns; never after
    ///   ``HTTPCall/cancel()``.
    @discardableResult
    package func send(
        _ request: HTTPRequest,
        ended: @escaping (Result<HTTPResponse, CallFault>) -> Void
    ) -> HTTPCall {
        lane.preconditionOnQueue()
        let call = HTTPCall(self, ended: ended)
        call.begin(request)
        return call
    }

    /// Closes the idle connections.
    package func closeIdle() { pool.closeIdle() }
}

/// A request of the gateway's own.
package struct HTTPRequest: Sendable {
    package enum Verb: String, Sendable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
        case put = "PUT"

        var method: Method {
            switch self {
            case .get: .get
            case .head: .head
            case .post: .post
            case .put: .put
            }
        }
    }

    package var verb: Verb
    /// In origin-form: path and query, percent-encoded.
    package var target: String
    /// The value of Host.
    package var authority: String
    /// Names and values. Host, Connection and what frames the content are the client's.
    package var fields: [(name: String, value: String)] = []
    package var content: [UInt8] = []

    package init(_ verb: Verb, _ target: String, authority: String) {
        self.verb = verb
        self.target = target
        self.authority = authority
    }

    /// Head and content; `nil` when the target is none.
    func bytes(closes: Bool) -> [UInt8]? {
        let isTarget =
            target.utf8.first == UInt8(ascii: "/")
            && target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
        guard isTarget else { return nil }
        var bytes = Array("\(verb.rawValue) \(target) HTTP/1.1\r\n".utf8)
        HeadWriter.field("Host", text: authority, into: &bytes)
        for (name, value) in fields where !Self.isOwn(name) {
            HeadWriter.field(text: Array(name.utf8), Array(value.utf8), into: &bytes)
        }
        if verb == .post || verb == .put || !content.isEmpty {
            HeadWriter.field("Content-Length", UInt64(content.count), into: &bytes)
        }
        if closes { HeadWriter.field("Connection", "close", into: &bytes) }
        HeadWriter.endHead(into: &bytes)
        return bytes + content
    }

    private static func isOwn(_ name: String) -> Bool {
        ["connection", "content-length", "host", "transfer-encoding", "upgrade"]
            .contains(name.lowercased())
    }
}

/// A whole response.
package struct HTTPResponse: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    package let status: Int
    /// As they came, in their order.
    package let fields: [Field]
    package var content: [UInt8] = []

    /// The value of the first field of a name, case aside.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// Why a call has no response.
package enum CallFault: Error, Equatable {
    /// The target is not in origin-form.
    case targetMalformed
    /// No server takes a connection.
    case unreachable(DialFault)
    /// The connection ended or broke before the response was complete.
    case closed
    /// The response did not begin in time.
    case firstByteTimedOut
    /// The response began and did not go on in time.
    case stalled
    /// The time for the call is over.
    case timedOut
    case responseMalformed(Malformed.Reason)
    case tooManyInterimResponses
    /// The content has more bytes than may be.
    case contentTooLarge
}
