import HTTPWire
import Lanes
import LoopbackKit
import Proxy
import Synchronization

/// The gateway's HTTP client on a lane of its own, for tests that call from another thread.
final class CallBench: Sendable {
    typealias Outcome = Result<HTTPResponse, CallFault>

    private let lane: Lane
    private let client: LaneBound<HTTPClient>

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
        lane = try Lane(number: 90)
        lane.start()
        client = LaneBound(HTTPClient(origin, settings, on: lane), on: lane)
    }

    static func get(_ target: String = "/") -> HTTPRequest {
        HTTPRequest(.get, target, authority: "called.test")
    }

    /// Sends a request and waits for its end.
    func call(_ request: HTTPRequest = CallBench.get()) throws -> Outcome {
        let ended = Gate()
        let box = OutcomeBox()
        lane.perform { [client] in
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
        lane.perform { [client, lane] in
            let made = client.value.send(CallBench.get()) {
                box.outcome.withLock { [result = $0] in $0 = result }
            }
            calls.call.withLock { $0 = LaneBound(made, on: lane) }
            begun.open()
        }
        try begun.pass()
        try reached.pass()
        lane.perform {
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
    let call = Mutex<LaneBound<HTTPCall>?>(nil)
}
