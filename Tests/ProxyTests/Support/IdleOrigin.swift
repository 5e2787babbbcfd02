import EventLoops
import Glibc
import HTTPWire
import Telemetry
import Testing

@testable import Proxy

/// An origin with one server, which takes connections and reads nothing. Its event loop does not
/// run: a test uses it on the event loop's queue, and no event comes meanwhile.
final class IdleOrigin {
    let loop: EventLoop
    let server: OriginServerSettings
    let settings: OriginSettings
    private let host = Host()
    private let listener: Int32

    /// - name: unlike those of all other tests.
    init(_ name: String, connectionsMax: Int? = nil, http2: OriginHTTP2? = nil) throws {
        let address = try #require(SocketAddress(abstractName: "portcullis-\(name)-\(getpid())"))
        listener = try Listener.open(address)
        loop = try EventLoop(number: 0)
        var server = OriginServerSettings(name: name, address: address)
        server.connectionsMax = connectionsMax
        server.http2 = http2
        self.server = server
        settings = OriginSettings(name: name, servers: [server])
    }

    deinit { close(listener) }

    /// A new pool of the origin.
    func pool() -> OriginPool { OriginPool(settings, on: loop, host: host) }

    /// A connection of the pool for a request; `nil` where the request waits.
    func stream(of pool: OriginPool) -> HTTP1OriginStream? {
        let connecting = pool.connect(for: Owner(), .init(reusesIdle: true))
        guard case .connected(let stream) = connecting else { return nil }
        return stream as? HTTP1OriginStream
    }

    private final class Host: OriginHost {
        let heads = HeadScratch()
        func count(_ counter: Counter, _ amount: UInt64) {}
        func dequeued(after nanoseconds: UInt64) {}
    }

    /// A request that only waits.
    private final class Owner: OriginStreamOwner {
        func originConnected(_ stream: any OriginStream) {}
        func originUnreachable(_ why: Unreached) {}
        func originReadable(_ stream: any OriginStream) {}
        func originDrained(_ stream: any OriginStream) {}
        func originWriteFailed(_ stream: any OriginStream) {}
        func originTimedOut(_ stream: any OriginStream) {}

        func originInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool { false }

        func originResponded(
            _ head: borrowing ResponseHead,
            _ bytes: Span<UInt8>,
            rest: Span<UInt8>
        ) -> Bool {
            false
        }

        func originContent(_ piece: Span<UInt8>) {}
    }
}
