import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Receiving and reading at the same time.
@Suite struct ExchangeTests {
    @Test func `what was wanted last is told last, by one caller at a time`() {
        var pace = TaskPace()
        expectEqual(pace.want(.running), nil)
        expectEqual(pace.want(.suspended), .suspended)
        // Another thread, before the first one has told the task.
        expectEqual(pace.want(.running), nil)
        expectEqual(pace.wasTold(), .running)
        expectEqual(pace.want(.suspended), nil)
        expectEqual(pace.want(.running), nil)
        expectEqual(pace.wasTold(), nil)
        expectEqual(pace.want(.suspended), .suspended)
        expectEqual(pace.wasTold(), nil)
        expectEqual(pace.want(.suspended), nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a download that is read while it is being paused goes on`() async throws {
        let task = SlowTask()
        let exchange = TransportExchange(task: task, bytesMax: 64 << 20)
        let response = try #require(
            HTTPURLResponse(
                url: Bench.url(FakeGateway.origin),
                statusCode: 200,
                httpVersion: nil,
                headerFields: nil
            )
        )
        task.onFirstResume { exchange.received(response) }
        _ = try await exchange.response()
        let hasRead = DispatchSemaphore(value: 0)
        let isSuspending = AsyncStream.makeStream(of: Void.self)
        task.onSuspend {
            isSuspending.continuation.yield()
            hasRead.wait()
        }
        let hasReceived = AsyncStream.makeStream(of: Void.self)
        Thread.detachNewThread {
            for _ in 0..<5 { exchange.received(Data(repeating: 1, count: 300_000)) }
            hasReceived.continuation.yield()
        }
        for await _ in isSuspending.stream { break }
        // The reader takes everything while the task is being told to suspend.
        for _ in 0..<4 { _ = try await exchange.piece() }
        hasRead.signal()
        for await _ in hasReceived.stream { break }
        #expect(!task.isSuspended)
    }

    /// On Linux, a task that was suspended sent its request again, and its content came twice.
    @Test(.timeLimit(.minutes(1)))
    func `a download that is read slowly is asked for once, and arrives once`() async throws {
        // More than waits to be read, and more than sockets hold.
        let pieces = [Data(repeating: 1, count: 24 << 20), Data(repeating: 2, count: 1 << 20)]
        let mayGoOn = DispatchSemaphore(value: 0)
        let hasSent = AsyncStream.makeStream(of: Void.self)
        let server = try LoopbackServer { _ in
            [LoopbackServer.head("200 OK", ["Content-Length: \(25 << 20)"])] + pieces
        } before: { place in
            guard place == 2 else { return }
            hasSent.continuation.yield()
            mayGoOn.wait()
        }
        let transport = URLSessionTransport(configuration: .ephemeral)
        let request = URLRequest(url: try Bench.url(server.url + "/"))
        let answer = try await transport.send(request, content: .none)
        for await _ in hasSent.stream { break }
        var count = 0
        for try await piece in answer.content {
            count += piece.count
            if count == 24 << 20 { mayGoOn.signal() }
        }
        mayGoOn.signal()
        expectEqual(count, 25 << 20)
        expectEqual(server.seen.count, 1)
    }
}

#if canImport(FoundationNetworking)
    /// What came faster than it was read waited in memory, up to a limit, and then failed.
    @Suite(.timeLimit(.minutes(1))) struct DownloadTests {
        private static let piece = Data(repeating: 7, count: 1 << 20)

        private static func server(
            _ count: Int,
            before: @escaping LoopbackServer.Before = { _ in }
        ) throws -> LoopbackServer {
            let head = LoopbackServer.head("200 OK", ["Content-Length: \(count << 20)"])
            return try LoopbackServer(
                { _ in [head] + Array(repeating: piece, count: count) },
                before: before
            )
        }

        @Test func `a download of 200 MiB arrives whole, with room for one MiB in memory`()
            async throws
        {
            let server = try Self.server(200)
            let session = PortcullisSession(
                PortcullisConfiguration(gateway: try Bench.url(server.url)),
                service: FakeService(),
                store: MemoryEnrolmentStore(),
                transport: URLSessionTransport(configuration: .ephemeral, bufferedBytes: 1 << 20)
            )
            let request = URLRequest(url: try Bench.url(server.url + "/film"))
            let (file, answer) = try await session.download(for: request)
            defer { try? FileManager.default.removeItem(at: file) }
            expectEqual(answer.statusCode, 200)
            let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size]
            expectEqual((size as? NSNumber)?.intValue, 200 << 20)
        }

        @Test func `a disk that does not write keeps the server from sending`() async throws {
            let hasSentAll = DispatchSemaphore(value: 0)
            let server = try Self.server(64) { if $0 == 64 { hasSentAll.signal() } }
            let disk = HeldDisk(until: hasSentAll)
            let transport = URLSessionTransport(configuration: .ephemeral)
            let request = URLRequest(url: try Bench.url(server.url + "/film"))
            let answer = try await transport.download(request, .none, into: disk, atMost: 64 << 20)
            for try await _ in answer.content {}
            expectEqual(disk.count, 64 << 20)
            expectEqual(disk.hasSeenAllSent, false)
        }

        @Test func `a download that is too long ends, and so does its task`() async throws {
            let server = try Self.server(4)
            let transport = URLSessionTransport(configuration: .ephemeral)
            let request = URLRequest(url: try Bench.url(server.url + "/film"))
            let answer = try await transport.download(
                request,
                content: .none,
                delegate: nil,
                atMost: 1 << 20
            )
            await #expect(throws: PortcullisError.answerTooLarge) {
                _ = try await answer.content.saved(atMost: 1 << 20)
            }
        }

        @Test(arguments: ["AppAttest error=\"x\", next=\"enrol\"", "Basic realm=\"a\""])
        func `a refusal of a download is read as any other`(field: String) async throws {
            let server = try LoopbackServer(
                "401 Unauthorized",
                ["WWW-Authenticate: \(field)"],
                content: Data("why".utf8)
            )
            let transport = URLSessionTransport(configuration: .ephemeral)
            let request = URLRequest(url: try Bench.url(server.url + "/film"))
            let answer = try await transport.download(
                request,
                content: .none,
                delegate: nil,
                atMost: 1
            )
            expectEqual(answer.response.statusCode, 401)
            // Read as far as the transport's own limit.
            try await expectEqual(answer.content.collected(atMost: 3), Data("why".utf8))
        }
    }

    /// A disk that takes the first piece once a server has sent all, or after half a second, in
    /// which a server on the same machine sends all that is taken from it.
    private final class HeldDisk: AnswerSink {
        private struct State {
            var count = 0
            var hasSeenAllSent: Bool?
        }

        private let hasSentAll: DispatchSemaphore
        private let state = Guarded(State())

        var count: Int { state.withLock { $0.count } }
        var hasSeenAllSent: Bool? { state.withLock { $0.hasSeenAllSent } }

        init(until hasSentAll: DispatchSemaphore) { self.hasSentAll = hasSentAll }

        func append(_ piece: Data) {
            if count == 0 {
                // Here, on the queue that receives: all other threads may wait for it.
                let result = hasSentAll.wait(timeout: .now() + 0.5)
                state.withLock { $0.hasSeenAllSent = result == .success }
            }
            state.withLock { $0.count += piece.count }
        }
    }
#endif

/// A task whose `suspend()` takes as long as a test says.
private final class SlowTask: TransportTask {
    private struct State {
        var suspensions = 0
        var onFirstResume: (@Sendable () -> Void)?
        var onSuspend: (@Sendable () -> Void)?
    }

    let canPause = true
    private let state = Guarded(State())

    var isSuspended: Bool { state.withLock { $0.suspensions > 0 } }

    func onFirstResume(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.onFirstResume = body }
    }

    func onSuspend(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.onSuspend = body }
    }

    func resume() {
        let body = state.withLock { state in
            state.suspensions = max(0, state.suspensions - 1)
            defer { state.onFirstResume = nil }
            return state.onFirstResume
        }
        body?()
    }

    func suspend() {
        let body = state.withLock { state in
            defer { state.onSuspend = nil }
            return state.onSuspend
        }
        body?()
        state.withLock { $0.suspensions += 1 }
    }

    func cancel() {}
}
