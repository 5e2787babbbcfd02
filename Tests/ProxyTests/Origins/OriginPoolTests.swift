import Dispatch
import EventLoops
import Expectations
import HTTPWire
import Testing

@testable import Proxy

/// Connections of a pool, and their ends.
@Suite struct OriginPoolTests {
    /// The request does not learn of its connection before the pool ends.
    @Test func `a connection that was put aside for a request is closed with its pool`() throws {
        let origin = try IdleOrigin("pool", connectionsMax: 1)
        let (waiting, wasClosed, isClosed) = try origin.loop.queue.sync {
            let pool = origin.pool()
            let stream = try #require(origin.stream(of: pool))
            _ = origin.stream(of: pool)
            let waiting = origin.settings.state.waiting
            stream.begin(RequestFacts(.get), framing: .none, limits: .none)
            stream.progress = .complete
            stream.isPersistent = true
            stream.release(isReusable: true, idleTime: 1_000, idleMax: 1)
            let wasClosed = stream.isClosed
            pool.retire(to: origin.pool())
            return (waiting, wasClosed, stream.isClosed)
        }
        expectEqual(waiting, 1)
        #expect(!wasClosed)
        #expect(isClosed)
        expectEqual(origin.settings.state.connections(of: origin.server.state), 0)
    }

    /// As if the process ended: a server may take an orderly end for that of the content.
    @Test func `a whole request that waits for its server ends in a reset until it is taken`()
        throws
    {
        let origin = try IdleOrigin("taken")
        let head = Array("POST / HTTP/1.1\r\n".utf8)
        // More than the kernel keeps for a Unix socket.
        let content = [UInt8](repeating: 7, count: 4 << 20)
        let (isSent, before, meanwhile, after) = try origin.loop.queue.sync {
            let stream = try #require(origin.stream(of: origin.pool()))
            defer { stream.close() }
            stream.begin(RequestFacts(.post), framing: .none, limits: .none)
            let before = stream.resetsOnClose
            _ = stream.sendHead(head.span, content.span, isWhole: true)
            let meanwhile = stream.resetsOnClose
            let isSent = stream.unsentBytes == 0
            stream.requestTaken()
            return (isSent, before, meanwhile, stream.resetsOnClose)
        }
        #expect(!isSent)
        #expect(!before)
        #expect(meanwhile)
        #expect(!after)
    }

    /// Trials come each second, and a connect may take longer.
    @Test func `a connect over HTTP/2 that still runs says nothing about its server`() throws {
        let http2 = OriginHTTP2(OriginRules(), head: HeadLimits())
        let origin = try IdleOrigin("running", http2: http2)
        let health = origin.server.state.health
        try origin.loop.queue.sync {
            let pool = origin.pool()
            let server = pool.servers[0]
            let shared = server.shared(
                by: .usual,
                connectTimeout: 1_000,
                queue: QueueRule(),
                host: pool.host,
                on: origin.loop
            )
            health.failed(.connectTimedOut, begunAt: 1, now: origin.loop.now)
            for _ in 0..<2 { try shared.connectAlone() }
            #expect(shared.isMaking)
            // The connection holds what has made it.
            shared.failed(.connectTimedOut, nil)
        }
        expectEqual(health.trouble, .connectTimedOut)
    }
}
