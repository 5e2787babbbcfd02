import Dispatch
import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Content that is signed before it is sent, and answers that are kept.
@Suite struct ContentTests {
    private func file(_ content: Data) throws -> URL {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-test-\(UUID().uuidString)")
        try content.write(to: file)
        return file
    }

    @Test func `a file that changes between two tries is not sent with the digest of the old one`()
        async throws
    {
        let file = try file(Data("old".utf8))
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try Bench()
        let signed = try await bench.session.sign(Bench.request("/a", "PUT"), fromFile: file)
        var last: HTTPURLResponse?
        // The system sends it twice: the second time its proof is spent.
        for _ in 0..<2 {
            last = try await bench.gateway.send(signed.request, content: .file(file)).response
        }
        try Data("newer".utf8).write(to: file)
        let refused = try #require(last)
        await #expect(throws: PortcullisError.contentChanged) {
            _ = try await bench.session.signAgain(signed, after: refused)
        }
    }

    @Test func `an upload whose file changes on its way ends with an error`() async throws {
        let file = try file(Data("old".utf8))
        defer { try? FileManager.default.removeItem(at: file) }
        let gateway = FakeGateway()
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.clock = ManualClock()
        let session = PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: WritingTransport(gateway, file)
        )
        await #expect(throws: PortcullisError.contentChanged) {
            _ = try await session.upload(for: Bench.request("/a", "PUT"), fromFile: file)
        }
        await expectEqual(gateway.seen.map(\.verdict), ["challenge-unknown"])
    }

    /// A pipe, which is read as a file is.
    private func pipe() throws -> URL {
        let pipe = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-pipe-\(UUID().uuidString)")
        try #require(mkfifo(pipe.path, 0o600) == 0)
        return pipe
    }

    @Test func `hashing a file ends with its task`() async throws {
        let pipe = try pipe()
        defer { try? FileManager.default.removeItem(at: pipe) }
        let task = Task { try await ReplayableContent(file: pipe) }
        // There is a writer as soon as there is a reader.
        var writer: Int32 = -1
        while writer < 0 {
            await Task.yield()
            writer = open(pipe.path, O_WRONLY | O_NONBLOCK)
        }
        task.cancel()
        // One piece may be read. Then comes the end, and a task that goes on has hashed it all.
        try #require(write(writer, "a", 1) == 1)
        close(writer)
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    /// As many files as there are threads for tasks, and more: pipes that nobody writes to.
    @Test func `files that are slow to read keep no other task waiting`() async throws {
        let pipes = try (0..<64).map { _ in try pipe() }
        defer { for pipe in pipes { try? FileManager.default.removeItem(at: pipe) } }
        let areThrough = DispatchSemaphore(value: 0)
        let wereInTime = Guarded<Bool?>(nil)
        // It needs none of the threads that tasks share.
        Thread.detachNewThread {
            let isInTime = areThrough.wait(timeout: .now() + 1_800) == .success
            wereInTime.withLock { $0 = isInTime }
            for pipe in pipes {
                // Opening waits for the reader, which then finds the end.
                Thread.detachNewThread { close(open(pipe.path, O_WRONLY)) }
            }
        }
        let readers = pipes.map { pipe in
            Task { _ = try? await ReplayableContent(file: pipe) }
        }
        // One after the other, these get through where a thread is left. Each waits for all that
        // other tests have to do.
        for _ in 0..<3 { await Task { await Task.yield() }.value }
        areThrough.signal()
        for reader in readers { await reader.value }
        expectEqual(wereInTime.withLock { $0 }, true)
    }

    @Test func `content is given beside a request, and a URL is enough to get something`()
        async throws
    {
        let bench = try Bench()
        var request = try Bench.request("/a", "POST")
        request.httpBody = Data("another".utf8)
        let content = Data("content".utf8)
        try await expectEqual(bench.session.upload(for: request, from: content).1.statusCode, 200)
        try await expectEqual(bench.session.upload(for: request, from: Data()).1.statusCode, 200)
        let url = try Bench.url(FakeGateway.origin + "/b")
        try await expectEqual(bench.session.data(from: url).0, Data("fine".utf8))
        await expectEqual(bench.gateway.seen.map(\.content), [content, Data(), Data()])
        await expectEqual(bench.verdicts, ["pass", "pass", "pass"])
    }

    @Test func `a download is a file of the caller's, up to a limit`() async throws {
        let bench = try Bench { $0.limits.downloadBytes = 1000 }
        await bench.gateway.change {
            $0.origins["/good"] = FakeGateway.Reply(content: Data(repeating: 5, count: 1000))
            $0.origins["/long"] = FakeGateway.Reply(content: Data(repeating: 5, count: 1001))
        }
        let (file, answer) = try await bench.session.download(for: Bench.request("/good"))
        defer { try? FileManager.default.removeItem(at: file) }
        expectEqual(answer.statusCode, 200)
        try expectEqual(Data(contentsOf: file), Data(repeating: 5, count: 1000))
        await #expect(throws: PortcullisError.answerTooLarge) {
            _ = try await bench.session.download(for: Bench.request("/long"))
        }
    }
}

/// Changes a file while the first request is on its way, whose challenge the gateway then forgets.
private actor WritingTransport: HTTPTransport {
    private let gateway: FakeGateway
    private let file: URL
    private var hasWritten = false

    init(_ gateway: FakeGateway, _ file: URL) { (self.gateway, self.file) = (gateway, file) }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        if !hasWritten, request.url?.path == "/a" {
            hasWritten = true
            await gateway.restart()
            let answer = try await gateway.send(request, content: content)
            try Data("newer".utf8).write(to: file)
            return answer
        }
        return try await gateway.send(request, content: content)
    }
}
