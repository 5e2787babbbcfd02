import EventLoops
import HTTPWire
import LoopbackKit
import Proxy
import Synchronization

/// The gateway's HTTP client on an event loop of its own, for tests that call from another thread.
final class CallBench: Sendable {
    typealias Outcome = Result<HTTPResponse, CallFault>

    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>

    /// A client of these servers, each `address:port` on this host.
    init(
        _ servers: [String],
        connect: UInt64 = 5_000,
        firstByte: UInt64 = 5_000,
        preface: OriginPreface = .none,
        _ change: (inout HTTPClient.Settings) -> Void = { _ in }
    ) throws {
        var settings = HTTPClient.Settings()
        change(&settings)
        var origin = OriginSettings(
            name: "called",
            servers: servers.compactMap { server in
                let port = server.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
                guard let address = SocketAddress(ip: "127.0.0.1", port: port) else { return nil }
                return OriginServerSettings(name: server, address: address)
            }
        )
        origin.rules.connectTimeout = connect
        origin.rules.firstByteTimeout = firstByte
        origin.preface = preface
        loop = try EventLoop(number: 90)
        loop.start()
        client = LoopBound(HTTPClient(origin, settings, on: loop), on: loop)
    }

    static func get(_ target: String = "/") -> HTTPRequest {
        HTTPRequest(.get, target, authority: "called.test")
    }

    /// Sends a request and waits for its end.
    func call(_ request: HTTPRequest = CallBench.get()) throws -> Outcome {
        let ended = Gate()
        let box = OutcomeBox()
        loop.perform { [client] in
            client.value.send(request) {
                box.outcome.withLock { [result = $0] in $0 = result }
                ended.open()
            }
        }
        try ended.pass()
        guard let result = box.outcome.withLock({ $0 }) else { throw WireFault.timedOut }
        return result
    }

    /// Begins a request and cancels it once `reached` is open; whether anything was told.
    func cancelled(when reached: Gate) throws -> Bool {
        let (begun, ended) = (Gate(), Gate())
        let box = OutcomeBox()
        let calls = CallBox()
        loop.perform { [client, loop] in
            let made = client.value.send(CallBench.get()) {
                box.outcome.withLock { [result = $0] in $0 = result }
            }
            calls.call.withLock { $0 = LoopBound(made, on: loop) }
            begun.open()
        }
        try begun.pass()
        try reached.pass()
        loop.perform {
            calls.call.withLock { $0?.value.cancel() }
            ended.open()
        }
        try ended.pass()
        return box.outcome.withLock { $0 != nil }
    }
}

private final class OutcomeBox: Sendable {
    let outcome = Mutex<CallBench.Outcome?>(nil)
}

private final class CallBox: Sendable {
    let call = Mutex<LoopBound<HTTPCall>?>(nil)
}
