import ConfigurationReading
import EventLoops
import Expectations
import Foundation
import Gateway
import Glibc
import HTTPWire
import LoopbackKit
import Services
import Synchronization
import Telemetry
import TestSupport
import Testing

extension Scenarios {
    /// Origins that are spoken to under TLS.
    struct OriginTLSTests {
        private static let get = "GET /x HTTP/1.1\r\nHost: shop.test\r\n\r\n"

        private static func made() throws -> TestCertificate { try TestCertificate.made.get() }

        private static func context() throws -> TLSContext {
            let made = try made()
            return try TLSContext(serverCertificateChain: made.certificate, key: made.key)
        }

        private static func origin(
            path: String? = nil,
            script: @escaping TestOrigin.Script = TestOrigin.friendly
        ) throws -> TestOrigin {
            try TestOrigin(path: path, tls: try context(), script: script)
        }

        /// In front of these servers; `options` are the members of `tls`. The time for a connect
        /// is short only where a test waits for its end: it includes the handshake.
        private static func gateway(
            _ servers: [String],
            _ options: String,
            connectTimeout: String = "30s",
            log: String = "{ access: off, level: error }"
        ) throws -> TestGateway {
            try TestGateway(
                [("shop", servers)],
                originOptions: ", connect_timeout: \(connectTimeout), tls: { \(options) }",
                log: log
            )
        }

        private static func trusting() throws -> String { "ca: '\(try made().certificate)'" }

        @Test func `requests and large content go to an origin under TLS on one connection`() throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            let gateway = try Self.gateway([origin.address], try Self.trusting())
            defer { gateway.stop() }
            let client = try gateway.connect()
            let content = [UInt8](repeating: 9, count: 3 << 20)
            for _ in 0..<3 {
                try client.send(Self.get)
                try expectEqual(client.readResponse().text, "ok")
                let length = "Content-Length: \(content.count)\r\n"
                try client.send("POST /y HTTP/1.1\r\nHost: a\r\n\(length)\r\n")
                try client.send(content)
                try expectEqual(client.readResponse().text, "ok")
            }
            expectEqual(origin.requests.last?.body, content)
            expectEqual(origin.connections.count, 1)
        }

        /// How an origin can't be trusted or understood.
        enum Fault: String, CaseIterable, Sendable {
            case untrusted = "certificate-untrusted"
            case otherName = "host-mismatch"
            case plain = "plain-http"
            case ended = "ended-in-handshake"
            case silent = "handshake-timeout"
        }

        @Test(arguments: Fault.allCases)
        func `an origin that can't be trusted or understood is answered for with its reason`(
            fault: Fault
        ) throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let gate = Gate()
            let origin: TestOrigin =
                switch fault {
                case .untrusted, .otherName: try Self.origin()
                case .plain:
                    // A close with bytes unread would be a reset, which may overtake the answer.
                    try TestOrigin { connection in
                        try connection.wire.receive()
                        try connection.wire.send("HTTP/1.1 400 No\r\n\r\n")
                        try connection.awaitEnd()
                    }
                case .ended: try TestOrigin { try $0.wire.receive() }
                case .silent: try TestOrigin { _ in try gate.pass() }
                }
            defer {
                gate.open()
                origin.stop()
            }
            let options =
                switch fault {
                case .untrusted: "minimum: 1.2"
                case .otherName: "\(try Self.trusting()), server_name: other.test"
                case .plain, .ended, .silent: try Self.trusting()
                }
            let file = folder + "/access.log"
            let gateway = try Self.gateway(
                [origin.address],
                options,
                connectTimeout: fault == .silent ? "400ms" : "30s",
                log: "{ access: '\(file)', level: error }"
            )
            defer { gateway.stop() }
            let answer = try gateway.ask(Self.get)
            expectEqual(answer.status, 502)
            #expect(answer.text.contains("\"reason\":\"origin-tls-failed\""))
            try gateway.server.wait { snapshot in
                let line = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
                guard line.hasSuffix("\n") else { return false }
                #expect(line.contains("\"problem\":\"origin-tls-failed\""), "\(line)")
                #expect(line.contains("\"origin_tls\":\"\(fault.rawValue)\""), "\(line)")
                expectEqual(snapshot.tally[Counter.originTLSFailures], 1)
                let isCertificate = fault == .untrusted || fault == .otherName
                expectEqual(
                    snapshot.tally[Counter.originCertificateFailures],
                    isCertificate ? 1 : 0
                )
                return true
            }
        }

        @Test func `the next server is tried when the handshake with one fails`() throws {
            let plain = try TestOrigin { try $0.wire.send("HTTP/1.1 400 No\r\n\r\n") }
            let origin = try Self.origin()
            defer {
                plain.stop()
                origin.stop()
            }
            let gateway = try Self.gateway([plain.address, origin.address], try Self.trusting())
            defer { gateway.stop() }
            for _ in 0..<6 { try expectEqual(gateway.ask(Self.get).status, 200) }
            // It is passed over after its failure, as a server that refuses connects.
            expectEqual(plain.connections.count, 1)
        }

        @Test func `the next connection resumes the session of the one before`() throws {
            let resumed = Mutex<[Bool]>([])
            let context = try Self.context()
            let origin = try TestOrigin(tls: context) { connection in
                guard let request = try connection.nextRequest() else { return }
                resumed.withLock { $0.append(connection.wire.isResumed) }
                try connection.answer(200, body: "ok", fields: "Connection: close\r\n", to: request)
            }
            defer { origin.stop() }
            let gateway = try Self.gateway([origin.address], try Self.trusting())
            defer { gateway.stop() }
            for _ in 0..<3 { try expectEqual(gateway.ask(Self.get).status, 200) }
            expectEqual(resumed.withLock { $0 }, [false, true, true])
        }

        @Test func `an origin that asks for a certificate gets that of its settings`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let made = try Self.made()
            let shown = try TestCertificate("gateway", names: "DNS:gateway.test", in: folder)
            let context = try TLSContext(
                showing: [ServerCertificate(chain: made.certificate, key: made.key)],
                clients: ClientTrust(authorities: shown.certificate, demand: .required)
            )
            let origin = try TestOrigin(tls: context)
            defer { origin.stop() }
            let pair = ", certificate: '\(shown.certificate)', key: '\(shown.key)'"
            for (more, status) in [(pair, 200), ("", 502)] {
                let gateway = try Self.gateway([origin.address], try Self.trusting() + more)
                defer { gateway.stop() }
                try expectEqual(gateway.ask(Self.get).status, status)
            }
            expectEqual(origin.requests.count, 1)
        }

        /// With TLS 1.3 the handshake is over for the gateway when the origin refuses.
        @Test(arguments: [true, false])
        func `the log says that an origin refuses the gateway's certificate`(isShown: Bool) throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let made = try Self.made()
            let trusted = try TestCertificate("trusted", names: "DNS:x", in: folder)
            let other = try TestCertificate("other", names: "DNS:x", in: folder)
            let context = try TLSContext(
                showing: [ServerCertificate(chain: made.certificate, key: made.key)],
                terms: TLSTerms(minimumVersion: .tls13),
                clients: ClientTrust(authorities: trusted.certificate, demand: .required)
            )
            let origin = try TestOrigin(tls: context)
            defer { origin.stop() }
            let pair = ", certificate: '\(other.certificate)', key: '\(other.key)'"
            let file = folder + "/access.log"
            let gateway = try Self.gateway(
                [origin.address],
                try Self.trusting() + (isShown ? pair : ""),
                log: "{ access: '\(file)', level: error }"
            )
            defer { gateway.stop() }
            #expect(try gateway.ask(Self.get).text.contains("origin-closed"))
            try gateway.server.wait { _ in
                let line = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
                guard line.hasSuffix("\n") else { return false }
                #expect(line.contains("\"origin_tls\":\"certificate-refused-by-peer\""), "\(line)")
                return true
            }
        }

        @Test(arguments: [true, false])
        func `checks go over TLS, and trust as requests do`(isTrusted: Bool) throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let tls = isTrusted ? try Self.trusting() : "minimum: 1.2"
            let check = "check: { path: /health, interval: 20ms, unhealthy: 1, timeout: 30s }"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                originOptions: ", \(check), tls: { \(tls) }"
            )
            defer { gateway.stop() }
            if isTrusted {
                #expect(
                    origin.wait { logs in
                        logs.flatMap(\.requests).count { $0.target == "/health" } > 2
                    }
                )
                try expectEqual(gateway.ask(Self.get).status, 200)
            } else {
                var answer = try gateway.ask(Self.get)
                try eventually {
                    if answer.status == 502 { answer = try gateway.ask(Self.get) }
                    return answer.status != 502
                }
                expectEqual(answer.status, 503)
                #expect(answer.text.contains("origin-down"))
                #expect(origin.requests.isEmpty)
            }
        }

        @Test func `a PROXY header goes out in the clear before TLS begins`() throws {
            let context = try Self.context()
            let resumed = Mutex<[Bool]>([])
            let origin = try TestOrigin { connection in
                let header = try connection.wire.take(28)
                guard
                    case .complete(28, .client(let address, let port)) =
                        try ProxyHeader.read(header.span)
                else { throw WireFault.malformed("PROXY header") }
                let session = try TLSSession(accepting: context)
                let rest = connection.wire.inbox
                session.feed(rest.span)
                connection.wire.inbox = []
                let inner = Wire(descriptor: dup(connection.wire.descriptor), tls: session)
                let named = "\(address.text):\(port)"
                for turn in 1...2 {
                    _ = try inner.readRequestHead()
                    // Before the answer: the test asks once it has both.
                    if turn == 1 { resumed.withLock { $0.append(inner.isResumed) } }
                    let length = "Content-Length: \(named.utf8.count)\r\n\r\n"
                    try inner.send("HTTP/1.1 200 OK\r\n" + length + named)
                }
                // Until the gateway ends it.
                try inner.receive()
            }
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                originOptions: ", proxy_protocol: v2, tls: { \(try Self.trusting()) }"
            )
            defer { gateway.stop() }
            for _ in 0..<2 {
                let client = try gateway.connect()
                for _ in 0..<2 {
                    try client.send(Self.get)
                    try expectEqual(client.readResponse().text, "127.0.0.1:\(client.localPort)")
                }
            }
            expectEqual(origin.connections.count, 2)
            expectEqual(resumed.withLock { $0 }, [false, true])
        }

        @Test func `insecure takes anybody, and check and the log warn of it`() throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let gateway = try Self.gateway([origin.address], "insecure: true")
            defer { gateway.stop() }
            try expectEqual(gateway.ask(Self.get).status, 200)
            let problems = Preparation.load(gateway.folder + "/portcullis.yaml").problems
            #expect(
                problems.contains {
                    $0.text.contains("warning: origins.shop.tls.insecure: found insecure: true")
                }
            )
        }

        /// Found as: 502 in place of the answer, when the machine was busy.
        @Test func `an early answer of several records arrives although the origin is gone`() throws
        {
            let fields = (0..<4).map { "X-Number-\($0): a\r\n" }
            let early = EarlyAnswer(
                ["HTTP/1.1 413 No\r\nContent-Length: 9\r\n"] + fields + ["\r\ntoo large"]
            )
            let origin = try Self.origin(script: early.play)
            defer { origin.stop() }
            let gateway = try Self.gateway([origin.address], try Self.trusting())
            defer { gateway.stop() }
            let answer = try early.ask(gateway, of: origin)
            expectEqual(answer.status, 413)
            expectEqual(answer.text, "too large")
            #expect(answer.head.has("x-number-3"))
        }

        @Test func `an origin on a Unix socket is spoken to under TLS`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try Self.origin(path: folder + "/origin.sock")
            defer { origin.stop() }
            let options = "\(try Self.trusting()), server_name: gateway.test"
            let gateway = try Self.gateway([origin.address], options)
            defer { gateway.stop() }
            for _ in 0..<3 { try expectEqual(gateway.ask(Self.get).text, "ok") }
            expectEqual(origin.connections.count, 1)
        }

        @Test func `a tunnel goes to an origin under TLS`() throws {
            let origin = try Self.origin { connection in
                if try connection.agreeToTunnel() { try connection.echo() }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway([origin.address], try Self.trusting())
            defer { gateway.stop() }
            let client = try gateway.connect()
            try client.openTunnel()
            try client.expectEcho()
        }

        @Test(arguments: [true, false])
        func `a response that ends with its connection is whole only after close_notify`(
            isOrderly: Bool
        ) throws {
            let origin = try Self.origin { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\n\r\nhello")
                if isOrderly { connection.wire.finishSending() }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway([origin.address], try Self.trusting())
            defer { gateway.stop() }
            let client = try gateway.connect()
            try client.send(Self.get)
            if isOrderly {
                try expectEqual(client.readResponse().text, "hello")
            } else {
                #expect(throws: (any Error).self) { try client.readResponse() }
            }
        }
    }
}
