import Dispatch
import EventLoops
import Glibc
import HTTPWire
import Testing

@testable import Proxy

/// What a pool does with connections and requests at its end.
@Suite struct OriginPoolTests {
    private final class Host: OriginHost {
        let heads = HeadScratch()
        func note(_ event: OriginEvent) {}
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

    private static func stream(_ connecting: OriginPool.Connecting) -> HTTP1OriginStream? {
        guard case .connected(let stream) = connecting else { return nil }
        return stream as? HTTP1OriginStream
    }

    /// The event loop does not run, so the request does not learn of the connection before the end.
    @Test func `a connection that was put aside for a request is closed with its pool`() throws {
        let address = try #require(SocketAddress(abstractName: "portcullis-pool-\(getpid())"))
        let listener = try Listener.open(address)
        defer { close(listener) }
        var server = OriginServerSettings(name: "a", address: address)
        server.connectionsMax = 1
        let origin = OriginSettings(name: "shop", servers: [server])
        let state = server.state
        let loop = try EventLoop(number: 0)
        let (host, first, second) = (Host(), Owner(), Owner())
        let (waiting, wasClosed, isClosed) = try loop.queue.sync {
            let pool = OriginPool(origin, on: loop, host: host)
            let connecting = pool.connect(for: first, flow: 0, reusesIdle: true)
            let stream = try #require(Self.stream(connecting))
            _ = pool.connect(for: second, flow: 0, reusesIdle: true)
            let waiting = origin.state.waiting
            stream.begin(RequestFacts(.get), framing: .none, limits: .none)
            stream.progress = .complete
            stream.isPersistent = true
            stream.release(isReusable: true, idleTime: 1_000, idleMax: 1)
            let wasClosed = stream.isClosed
            pool.retire(to: OriginPool(origin, on: loop, host: host))
            return (waiting, wasClosed, stream.isClosed)
        }
        #expect(waiting == 1)
        #expect(!wasClosed)
        #expect(isClosed)
        #expect(origin.state.connections(of: state) == 0)
    }
}
