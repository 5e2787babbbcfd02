package import EventLoops
package import HTTPWire

/// Sends requests of the gateway's own: to see whether a server is well, to ask a service.
///
/// Lives on its event loop's queue. Its servers are taken in turn as those of an origin are; one
/// that answers no one is passed over while another does. A response is read whole, up to a limit.
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

    package let loop: EventLoop
    let settings: Settings
    let limits: ResponseLimits
    private(set) var pool: OriginPool
    private let events: Events

    /// A client of servers. The origin's settings say how long a connect and the head of a response
    /// may take.
    package init(_ origin: OriginSettings, _ settings: Settings, on loop: EventLoop) {
        self.loop = loop
        self.settings = settings
        limits = ResponseLimits(head: settings.head, interimMax: settings.interimMax)
        events = Events()
        pool = OriginPool(origin, on: loop, host: events)
    }

    /// Its calls are no requests of clients, and not counted with them.
    private final class Events: OriginHost {
        let heads = HeadScratch()
        func note(_ event: OriginEvent) {}
    }

    /// Sends a request.
    ///
    /// - ended: called once, on the event loop, maybe before this returns; never after
    ///   ``HTTPCall/cancel()``.
    @discardableResult
    package func send(
        _ request: HTTPRequest,
        ended: @escaping (Result<HTTPResponse, CallFault>) -> Void
    ) -> HTTPCall {
        loop.preconditionOnQueue()
        let call = HTTPCall(self, ended: ended)
        call.begin(request)
        return call
    }

    /// Closes the idle connections.
    package func closeIdle() { pool.closeIdle() }
}
