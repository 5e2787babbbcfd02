import EventLoops
import Foundation
import Glibc
import LoopbackKit
import Synchronization
import TestSupport

/// A gateway and the origin behind it, for cases that are played one after the other.
final class Bench: Sendable {
    let origin: TestOrigin
    let gateway: TestGateway
    private let trust: TLSContext?
    private let http2Trust: TLSContext?
    /// For what the gateway answers itself.
    private let kept = Mutex<Wire?>(nil)

    /// With TLS on the listener or without; `more` are further sections of the configuration.
    init(
        isSecure: Bool = false,
        http2: Bool = false,
        more: String = "",
        script: @escaping TestOrigin.Script = TestOrigin.friendly
    ) throws {
        origin = try TestOrigin(script: script)
        var listen = "address: 127.0.0.1:0"
        if isSecure {
            let made = try TestCertificate.made.get()
            listen += ", tls: { certificate: \(made.certificate), key: \(made.key) }"
            trust = try TLSContext(clientTrusting: .file(made.certificate))
            http2Trust = try TLSContext(
                clientTrusting: .file(made.certificate),
                terms: TLSTerms(protocols: [TLSContext.http2])
            )
        } else {
            (trust, http2Trust) = (nil, nil)
        }
        if http2 { listen += ", http2: on" }
        gateway = try TestGateway([("shop", [origin.address])], listen: listen, more: more)
    }

    func connect() throws -> Wire {
        let tls = try trust.map { try TLSSession(connecting: $0, to: "127.0.0.1") }
        return try Wire(port: gateway.port, tls: tls)
    }

    /// A client of HTTP/2, under TLS where the listener has it.
    func connectHTTP2(settings: [(id: UInt16, value: UInt32)] = []) throws -> HTTP2Client {
        let tls = try http2Trust.map { try TLSSession(connecting: $0, to: "127.0.0.1") }
        return try HTTP2Client(try Wire(port: gateway.port, tls: tls), settings: settings)
    }

    /// Whether the gateway serves: it answers a request itself, on a connection that is kept. What
    /// came to its only event loop before is done by then.
    func isServing() throws -> Bool {
        let client = try kept.withLock { $0 } ?? connect()
        // One that fails is not kept, since the next case would fail, too.
        kept.withLock { $0 = nil }
        try client.send("GET /.well-known/app-attest/none HTTP/1.1\r\nHost: proxy.test\r\n\r\n")
        guard try client.readFinalResponse().status == 404 else { return false }
        kept.withLock { $0 = client }
        return true
    }

    func stop() {
        kept.withLock { $0 = nil }
        gateway.stop()
        origin.stop()
    }

    /// Plays cases on several benches at once.
    ///
    /// - Returns: what `play` answered, by the case's name; cases without an answer are left out.
    static func play(
        _ cases: [HTTPCase],
        makeBench: @Sendable () throws -> Bench,
        _ play: @Sendable (HTTPCase, Bench) throws -> String?
    ) throws -> [String: String] {
        let found = Mutex<[String: String]>([:])
        let next = Atomic<Int>(0)
        let benches = try (0..<3).map { _ in try makeBench() }
        defer { for bench in benches { bench.stop() } }
        DispatchQueue.concurrentPerform(iterations: benches.count) { worker in
            while true {
                let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard index < cases.count else { return }
                let one = cases[index]
                let fault: String?
                do {
                    fault = try play(one, benches[worker])
                } catch {
                    fault = "\(error)"
                }
                guard let fault else { continue }
                found.withLock { $0[one.id] = fault }
            }
        }
        return found.withLock { $0 }
    }
}
