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
        #expect(pace.want(.running) == nil)
        #expect(pace.want(.suspended) == .suspended)
        // Another thread, before the first one has told the task.
        #expect(pace.want(.running) == nil)
        #expect(pace.wasTold() == .running)
        #expect(pace.want(.suspended) == nil)
        #expect(pace.want(.running) == nil)
        #expect(pace.wasTold() == nil)
        #expect(pace.want(.suspended) == .suspended)
        #expect(pace.wasTold() == nil)
        #expect(pace.want(.suspended) == nil)
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
        #expect(count == 25 << 20)
        #expect(server.seen.count == 1)
    }
}

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
