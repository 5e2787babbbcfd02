package import EventLoops
package import HTTPWire
import Telemetry

/// Sends requests of the gateway's own: checks of servers, and calls of services.
///
/// Lives on its event loop's queue. It uses its servers in turn, like those of an origin. It skips
/// a server that does not answer while another one does. It reads a response as a whole, up to a
/// limit.
package final class HTTPClient {
    /// The settings of all calls.
    package struct Settings: Sendable {
        /// Milliseconds from the call to the end of the response.
        package var totalTimeout: UInt64 = 10_000
        /// The most milliseconds without a byte of the response's content.
        package var idleTimeout: UInt64 = 10_000
        /// The most bytes of a response's content.
        package var contentMax = 64 << 10
        /// Limits of a response's head.
        package var head = HeadLimits()
        /// The most interim (1xx) responses to one request.
        package var interimMax = 16
        /// Idle connections that are kept for later calls; 0 for a new connection each time.
        package var idleMax = 0
        /// Milliseconds for which they are kept.
        package var poolTime: UInt64 = 30_000

        package init() {}
    }

    package let loop: EventLoop
    let settings: Settings
    let limits: ResponseLimits
    private(set) var pool: OriginPool
    private let events: Events

    /// A client of servers. The origin's settings limit the time for a connect and for the head of
    /// a response.
    package init(_ origin: OriginSettings, _ settings: Settings, on loop: EventLoop) {
        self.loop = loop
        self.settings = settings
        limits = ResponseLimits(head: settings.head, interimMax: settings.interimMax)
        events = Events()
        pool = OriginPool(origin, on: loop, host: events)
    }

    /// Its calls are no requests of clients, so they are not counted with them.
    private final class Events: OriginHost {
        let heads = HeadScratch()
        func count(_ counter: Counter, _ amount: UInt64) {}
        func dequeued(after nanoseconds: UInt64) {}
    }

    /// Sends a request.
    ///
    /// - ended: called once, on the event loop, possibly before this returns; never after
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

    package func closeIdle() { pool.closeIdle() }
}
