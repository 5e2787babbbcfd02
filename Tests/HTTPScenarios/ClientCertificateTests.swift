import ConfigurationReading
import EventLoops
import Expectations
import Foundation
import Gateway
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Certificates that clients show.
    struct ClientCertificateTests {
        private static let get = """
            GET /x HTTP/1.1\r
            Host: shop.test\r
            X-Forwarded-Client-Cert: Hash=00;Subject="CN=root"\r
            X_Forwarded_Client_Cert: Hash=01\r
            x.forwarded-client.cert: Hash=02\r
            X-FORWARDED-CLIENT-CERT: Hash=03\r
            \r\n
            """

        /// A gateway with two listeners, the first one plainly under TLS, and what clients need.
        private struct Stage {
            let folder: String
            let origin: TestOrigin
            let gateway: TestGateway
            let server: TestCertificate
            let client: TestCertificate

            init(
                _ demand: String,
                log: String = "off",
                script: @escaping TestOrigin.Script = TestOrigin.friendly
            ) throws {
                folder = try TemporaryFolder.make()
                origin = try TestOrigin(script: script)
                server = try TestCertificate.made.get()
                client = try TestCertificate("client", names: "DNS:client.test", in: folder)
                let pair = "certificate: '\(server.certificate)', key: '\(server.key)'"
                let asked = "client: { ca: '\(client.certificate)', require: \(demand) }"
                gateway = try TestGateway(
                    [("shop", [origin.address])],
                    listen: """
                        address: 127.0.0.1:0, tls: { \(pair) } }
                          - { address: 127.0.0.1:0, tls: { \(pair), \(asked) }
                        """,
                    log: "{ access: \(log == "off" ? log : folder + "/" + log), level: error }"
                )
            }

            func stop() {
                gateway.stop()
                origin.stop()
                TemporaryFolder.remove(folder)
            }

            /// The port of the listener that asks for certificates.
            var port: UInt16 {
                let text = gateway.server.addresses[1]
                return UInt16(text.split(separator: ":").last.map(String.init) ?? "") ?? 0
            }

            func context(
                showing shown: TestCertificate?,
                protocols: [String] = [TLSContext.http11]
            ) throws -> TLSContext {
                try TLSContext(
                    clientTrusting: .file(server.certificate),
                    showing: shown.map { ServerCertificate(chain: $0.certificate, key: $0.key) },
                    terms: TLSTerms(protocols: protocols)
                )
            }

            /// A client of HTTP/2 at the listener that asks for certificates.
            func connectHTTP2(showing shown: TestCertificate?) throws -> HTTP2Client {
                let context = try context(showing: shown, protocols: [TLSContext.http2])
                let tls = try TLSSession(connecting: context, to: "127.0.0.1")
                return try HTTP2Client(try Wire(port: port, tls: tls))
            }

            func ask(
                _ port: UInt16,
                _ context: TLSContext,
                resuming: TLSResumption? = nil
            ) throws -> (status: Int, isResumed: Bool) {
                let tls = try TLSSession(connecting: context, to: "127.0.0.1", resuming: resuming)
                let wire = try Wire(port: port, tls: tls)
                try wire.send(ClientCertificateTests.get)
                let status = try wire.readResponse().status
                return (status, wire.isResumed)
            }

            /// What the origin got in the last request.
            var told: [String] {
                origin.requests.last?.head.all("x-forwarded-client-cert") ?? []
            }

            /// What it should get of the client's certificate.
            func expected() throws -> String {
                let arguments = ["x509", "-in", client.certificate, "-noout"]
                let print = try TestCertificate.openssl(arguments + ["-fingerprint", "-sha256"])
                let hex = print.split(separator: "=")[1].filter(\.isHexDigit).lowercased()
                return "Hash=\(hex);Subject=\"CN=client\""
            }
        }

        @Test func `an origin is told the certificate that a client must show`() throws {
            let stage = try Stage("required", log: "access.log")
            defer { stage.stop() }
            let context = try stage.context(showing: stage.client)
            let resumption = TLSResumption()
            for isResumed in [false, true] {
                let answer = try stage.ask(stage.port, context, resuming: resumption)
                expectEqual(answer.status, 200)
                expectEqual(answer.isResumed, isResumed)
                #expect(stage.told == [try stage.expected()])
                let names = stage.origin.requests.last?.head.fields.map { $0.name.lowercased() }
                expectEqual(names?.filter { $0.contains("client") }.count, 1)
            }
            #expect(throws: (any Error).self) {
                try stage.ask(stage.port, stage.context(showing: nil))
            }
            let stranger = try TestCertificate("other", names: "DNS:x", in: stage.folder)
            #expect(throws: (any Error).self) {
                try stage.ask(stage.port, stage.context(showing: stranger))
            }
            expectEqual(stage.origin.requests.count, 2)
        }

        @Test func `an origin is told the certificate of an HTTP/2 client that must show one`()
            throws
        {
            let stage = try Stage("required")
            defer { stage.stop() }
            let forged = [("x-forwarded-client-cert", "Hash=00;Subject=\"CN=root\"")]
            let client = try stage.connectHTTP2(showing: stage.client)
            for _ in 0..<2 {
                try expectEqual(client.ask(HTTP2Client.get("/x", forged)).status, 200)
                #expect(stage.told == [try stage.expected()])
            }
            let stranger = try TestCertificate("other", names: "DNS:x", in: stage.folder)
            for shown in [nil, stranger] {
                #expect(throws: (any Error).self) {
                    try stage.connectHTTP2(showing: shown).ask(HTTP2Client.get())
                }
            }
            expectEqual(stage.origin.requests.count, 2)
        }

        @Test func `a tunnel's line in the log names its client's certificate`() throws {
            let stage = try Stage("required", log: "access.log") { connection in
                guard try connection.nextRequest() != nil else { return }
                let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                try connection.wire.send(head + "Connection: Upgrade\r\n\r\n")
                try connection.awaitEnd()
            }
            defer { stage.stop() }
            let context = try stage.context(showing: stage.client)
            let tls = try TLSSession(connecting: context, to: "127.0.0.1")
            let wire = try Wire(port: stage.port, tls: tls)
            let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
            try wire.send("GET /t HTTP/1.1\r\nHost: a\r\n\(upgrade)\r\n")
            try expectEqual(wire.readResponse().status, 101)
            wire.close()
            let path = stage.folder + "/access.log"
            let name = try stage.expected().dropFirst(5).prefix(16)
            #expect(
                try eventually {
                    try String(contentsOfFile: path, encoding: .utf8)
                        .contains(#""client_certificate":"\#(name)""#)
                }
            )
        }

        @Test func `a client without a certificate is served where it is optional`() throws {
            let stage = try Stage("optional")
            defer { stage.stop() }
            try expectEqual(stage.ask(stage.port, stage.context(showing: nil)).status, 200)
            #expect(stage.told.isEmpty)
            try expectEqual(stage.ask(stage.port, stage.context(showing: stage.client)).status, 200)
            #expect(stage.told == [try stage.expected()])
            let stranger = try TestCertificate("other", names: "DNS:x", in: stage.folder)
            #expect(throws: (any Error).self) {
                try stage.ask(stage.port, stage.context(showing: stranger))
            }
        }

        @Test func `a session of a listener that asks for nothing opens none that asks`() throws {
            let stage = try Stage("required")
            defer { stage.stop() }
            let context = try stage.context(showing: nil)
            let resumption = TLSResumption()
            let port = stage.gateway.port
            try expectEqual(stage.ask(port, context, resuming: resumption).status, 200)
            #expect(try stage.ask(port, context, resuming: resumption).isResumed)
            #expect(stage.told.isEmpty)
            #expect(resumption.isKnown)
            #expect(throws: (any Error).self) {
                try stage.ask(stage.port, context, resuming: resumption)
            }
            expectEqual(stage.origin.requests.count, 2)
        }
    }
}
