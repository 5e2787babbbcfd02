package import PortcullisClient
import Synchronization

#if canImport(FoundationNetworking)
    import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// A transport that fails as a script says, and writes down what passes.
package final class ScriptedTransport: HTTPTransport {
    /// What becomes of one request.
    package enum Step: Sendable {
        /// It is sent, and its answer comes.
        case pass
        /// It is not sent.
        case fail
        /// It is sent, and its answer is lost.
        case loseAnswer
        /// It is sent twice, as systems do whose connection has ended; the second answer comes.
        case sendTwice
        /// It waits for a latch, then is sent.
        case wait(Latch)
        /// It is sent once this has run.
        case run(@Sendable () throws -> Void)
        /// It is sent, and this is run before its answer comes.
        case runAfter(@Sendable () -> Void)
        /// It is not sent, and this is its answer.
        case answer(@Sendable (URLRequest) async throws -> TransportAnswer)
        /// It is not sent, this is run, and no answer comes until the caller gives it up.
        case hang(@Sendable () -> Void)
    }

    /// A request that was sent, and the status of its answer.
    package struct Exchange: Sendable {
        package let method: String
        package let path: String
        /// By name in lower case.
        package let fields: [String: String]
        package let status: Int?
    }

    private struct State {
        var steps: [String: [Step]] = [:]
        var lasting: [String: Step] = [:]
        var asked: [String: Int] = [:]
        var exchanges: [Exchange] = []
    }

    private let transport: any HTTPTransport
    private let state = Mutex(State())

    package init(_ transport: any HTTPTransport) { self.transport = transport }

    /// What was sent so far.
    package var exchanges: [Exchange] { state.withLock(\.exchanges) }

    /// What was sent to a path.
    package func exchanges(_ path: String) -> [Exchange] {
        exchanges.filter { $0.path == path }
    }

    /// How many requests to a path it was given, whatever became of them.
    package func asked(_ path: String) -> Int { state.withLock { $0.asked[path] ?? 0 } }

    /// Sets what becomes of all requests to a path for which no step is left.
    package func always(_ path: String, _ step: Step) {
        state.withLock { $0.lasting[path] = step }
    }

    /// Sets what becomes of the next requests to a path.
    package func next(_ path: String, _ steps: Step...) {
        state.withLock { $0.steps[path] = steps }
    }

    package func prepared(_ request: URLRequest) -> URLRequest { transport.prepared(request) }

    package func cookies(for request: URLRequest) -> String? { transport.cookies(for: request) }

    package func keepCookies(of response: HTTPURLResponse, to request: URLRequest) {
        transport.keepCookies(of: response, to: request)
    }

    package func send(
        _ request: URLRequest,
        content: RequestContent
    ) async throws -> TransportAnswer {
        try await send(request, content: content, delegate: nil)
    }

    package func send(
        _ request: URLRequest,
        content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?
    ) async throws -> TransportAnswer {
        try await perform(request) { [transport] in
            try await transport.send(request, content: content, delegate: delegate)
        }
    }

    package func download(
        _ request: URLRequest,
        content: RequestContent,
        delegate: (any URLSessionTaskDelegate)?,
        atMost limit: Int
    ) async throws -> TransportAnswer {
        try await perform(request) { [transport] in
            try await transport.download(
                request,
                content: content,
                delegate: delegate,
                atMost: limit
            )
        }
    }

    /// Does with a request what its step says; `work` sends it.
    private func perform(
        _ request: URLRequest,
        _ work: () async throws -> TransportAnswer
    ) async throws -> TransportAnswer {
        let path = request.url?.path ?? ""
        let step = state.withLock { state -> Step in
            state.asked[path, default: 0] += 1
            guard var steps = state.steps[path], !steps.isEmpty else {
                return state.lasting[path] ?? .pass
            }
            let step = steps.removeFirst()
            state.steps[path] = steps
            return step
        }
        switch step {
        case .pass, .loseAnswer, .runAfter: break
        case .sendTwice:
            let answer = try await work()
            for try await _ in answer.content {}
            note(request, path, status: answer.response.statusCode)
        case .fail: throw URLError(.cannotConnectToHost)
        case .wait(let latch): await latch.pass()
        case .run(let body): try body()
        case .answer(let answer): return try await answer(request)
        case .hang(let body):
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            body()
            for await _ in stream {}
            continuation.finish()
            throw CancellationError()
        }
        do {
            let answer = try await work()
            note(request, path, status: answer.response.statusCode)
            if case .runAfter(let body) = step { body() }
            guard case .loseAnswer = step else { return answer }
        } catch {
            note(request, path, status: nil)
            throw error
        }
        throw URLError(.networkConnectionLost)
    }

    private func note(_ request: URLRequest, _ path: String, status: Int?) {
        var fields: [String: String] = [:]
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            fields[name.lowercased()] = value
        }
        let exchange = Exchange(
            method: request.httpMethod ?? "GET",
            path: path,
            fields: fields,
            status: status
        )
        state.withLock { $0.exchanges.append(exchange) }
    }
}
