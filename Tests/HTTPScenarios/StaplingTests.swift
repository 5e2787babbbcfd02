import ConfigurationReading
import Expectations
import Foundation
import Gateway
import LoopbackKit
import Services
import Synchronization
import Testing

extension Scenarios {
    /// OCSP responses in the handshake.
    struct StaplingTests {
        /// A folder with what a gateway shows.
        private struct Stage {
            let folder: String
            let origin: TestOrigin

            init() throws {
                folder = try TemporaryFolder.make()
                origin = try TestOrigin()
            }

            func stop() {
                origin.stop()
                TemporaryFolder.remove(folder)
            }

            func certificate(_ name: String, more: [String] = []) throws -> TestCertificate {
                try TestCertificate(name, names: "DNS:\(name).test", in: folder, more: more)
            }

            func response(_ name: String) -> String { "\(folder)/\(name).der" }

            func listen(_ certificates: [(TestCertificate, String?)]) -> String {
                let list = certificates.map { certificate, response in
                    let ocsp = response.map { ", ocsp: '\($0)'" } ?? ""
                    return "{ certificate: '\(certificate.certificate)', "
                        + "key: '\(certificate.key)'\(ocsp) }"
                }
                let joined = list.joined(separator: ", ")
                return "address: 127.0.0.1:0, tls: { certificates: [\(joined)] }"
            }

            func gateway(
                _ certificates: [(TestCertificate, String?)],
                wallClock: (@Sendable () -> Int64)? = nil
            ) throws -> TestGateway {
                try TestGateway(
                    [("shop", [origin.address])],
                    listen: listen(certificates),
                    certificatePace: .milliseconds(10),
                    wallClock: wallClock
                )
            }

            /// What `check` says of the listener.
            func problems(_ certificates: [(TestCertificate, String?)]) throws -> [Problem] {
                let file = folder + "/portcullis.yaml"
                let text = TestGateway.text(
                    [("shop", ["127.0.0.1:9"])],
                    listen: listen(certificates)
                )
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                return Preparation.load(file).problems.filter { $0.text.contains("listen[0].tls") }
            }
        }

        /// What `openssl s_client` prints of the response that it is sent.
        private static func status(
            _ gateway: TestGateway,
            _ name: String,
            _ options: [String] = []
        ) throws -> String {
            let openssl = try #require(ChildProcess.tool("openssl"))
            let arguments = ["-connect", "127.0.0.1:\(gateway.port)", "-servername", name]
            return try ChildProcess.run(openssl, ["s_client", "-status"] + arguments + options)
                .printed
        }

        private static let nothing = "OCSP response: no response sent"

        @Test(arguments: ["-tls1_2", "-tls1_3"])
        func `clients that ask get the response for the certificate that they are shown`(
            version: String
        ) throws {
            let stage = try Stage()
            defer { stage.stop() }
            let first = try stage.certificate(
                "first",
                more: ["-addext", "tlsfeature=status_request"]
            )
            let other = try stage.certificate("other")
            let bare = try stage.certificate("bare")
            try first.respond(to: stage.response("first"))
            try other.respond(to: stage.response("other"))
            let gateway = try stage.gateway([
                (first, stage.response("first")), (other, stage.response("other")), (bare, nil),
            ])
            defer { gateway.stop() }
            for certificate in [first, other] {
                let name = certificate.certificate == first.certificate ? "first" : "other"
                let printed = try Self.status(gateway, "\(name).test", [version])
                #expect(printed.contains("OCSP Response Status: successful"), "\(printed)")
                #expect(printed.contains("Cert Status: good"))
                #expect(printed.contains("    Serial Number: \(try certificate.serial())"))
            }
            #expect(try Self.status(gateway, "bare.test", [version]).contains(Self.nothing))
            // curl refuses a server without a response that it can verify.
            let curl = try #require(ChildProcess.tool("curl"))
            for (name, status) in [("other", Int32(0)), ("bare", 91)] {
                let outcome = try ChildProcess.run(
                    curl,
                    ["--silent", "--cert-status", "--cacert", "\(stage.folder)/\(name).pem"]
                        + ["--tls-max", version == "-tls1_2" ? "1.2" : "1.3"]
                        + ["--resolve", "\(name).test:\(gateway.port):127.0.0.1"]
                        + ["https://\(name).test:\(gateway.port)/"]
                )
                expectEqual(outcome.status, status, "\(outcome)")
            }
            let metrics = try gateway.server.snapshot().tls.certificates.map(\.staple)
            guard case .until(let end)? = metrics.first, case .notConfigured? = metrics.last else {
                Issue.record("\(metrics)")
                return
            }
            let left = end - Int64(Date().timeIntervalSince1970)
            let days: Int64 = 3 * 86_400
            #expect(abs(left - days) < 600)
        }

        @Test func `a response that can't be used leaves the previous one, until its end`() throws {
            let stage = try Stage()
            defer { stage.stop() }
            let ahead = Mutex<Int64>(0)
            let first = try stage.certificate("first")
            let file = stage.response("first")
            try first.respond(days: 2, to: file)
            let gateway = try stage.gateway([(first, file)]) {
                Int64(Date().timeIntervalSince1970 * 1_000) + ahead.withLock { $0 }
            }
            defer { gateway.stop() }
            func end() throws -> Int64 {
                let certificates = try gateway.server.snapshot().tls.certificates
                let staple = try #require(certificates.first).staple
                guard case .until(let end) = staple else { return 0 }
                return end
            }
            func wait(for problem: String?) throws {
                try gateway.server.wait { $0.tls.certificates.first?.stapleProblem == problem }
            }
            let before = try end()
            try first.respond(days: 6, to: file)
            try gateway.server.wait {
                guard case .until(let end)? = $0.tls.certificates.first?.staple else {
                    return false
                }
                return end > before + 3 * 86_400
            }
            let renewed = try end()
            try "no response".write(toFile: file, atomically: true, encoding: .utf8)
            try wait(for: "malformed")
            try expectEqual(end(), renewed)
            #expect(try Self.status(gateway, "first.test").contains("Cert Status: good"))
            // A reload keeps it as well.
            gateway.server.readAgain()
            try gateway.server.wait { $0.configuration.generation == 2 }
            #expect(try Self.status(gateway, "first.test").contains("Cert Status: good"))
            // Nobody has read the file again; the handshake sees that the response has ended.
            ahead.withLock { $0 = 7 * 86_400_000 }
            #expect(try Self.status(gateway, "first.test").contains(Self.nothing))
            try first.respond(days: 6, to: file)
            try wait(for: "expired")
            try expectEqual(end(), 0)
            ahead.withLock { $0 = 0 }
            try first.respond(days: 5, to: file)
            try wait(for: nil)
            #expect(try Self.status(gateway, "first.test").contains("Cert Status: good"))
            try first.respond(.revoked, to: file)
            try wait(for: "revoked")
            #expect(try Self.status(gateway, "first.test").contains(Self.nothing))
        }

        @Test func `check tells what is wrong with a response`() throws {
            let stage = try Stage()
            defer { stage.stop() }
            let one = try stage.certificate("one")
            let two = try stage.certificate("two")
            let file = stage.response("one")
            func found(_ certificate: TestCertificate, _ response: String?) throws -> [String] {
                try stage.problems([(certificate, response)]).map(\.text)
            }
            let missing = try stage.problems([(one, file)])
            expectEqual(missing.map(\.severity), [.error])
            expectEqual(missing.first?.text.contains("listen[0].tls.certificates[0].ocsp"), true)
            try one.respond(to: file)
            #expect(try found(one, file).isEmpty)
            let wanted: [(TestCertificate.Standing, TestCertificate?, TestCertificate, String)] = [
                (.good, nil, two, "a response for another certificate"),
                (.revoked, nil, one, "that the certificate is revoked"),
                (.unknown, nil, one, "that the issuer does not know the certificate"),
                (.good, two, one, "that the certificate's issuer has not signed"),
            ]
            for (standing, responder, shown, text) in wanted {
                try one.respond(standing, responder: responder, to: file)
                let problems = try found(shown, file)
                expectEqual(problems.count, 1)
                expectEqual(problems.first?.contains(text), true, "\(problems)")
                expectEqual(problems.first?.contains("certificates[0].ocsp: "), true)
            }
            try one.respond(days: nil, to: file)
            try expectEqual(found(one, file).first?.contains("without nextUpdate"), true)
            try one.respond(to: file)
            let bytes = try Data(contentsOf: URL(filePath: stage.response("one")))
            try (bytes + [0]).write(to: URL(filePath: file))
            try expectEqual(found(one, file).first?.contains("is no OCSP response in DER"), true)
            let stapled = ["-addext", "tlsfeature=status_request"]
            let demanding = try found(stage.certificate("three", more: stapled), nil)
            expectEqual(demanding.first?.contains("that demands an OCSP response"), true)
        }

        @Test func `a responder's own certificate counts when the issuer has made it`() throws {
            let stage = try Stage()
            defer { stage.stop() }
            let authority = try stage.certificate("authority")
            let issued =
                ["-CA", authority.certificate, "-CAkey", authority.key]
                + ["-addext", "basicConstraints=critical,CA:FALSE"]
            let leaf = try stage.certificate("leaf", more: issued)
            let signing = ["-addext", "extendedKeyUsage=OCSPSigning"]
            let responder = try stage.certificate("responder", more: issued + signing)
            let wrong = try stage.certificate("wrong", more: issued)
            let file = stage.response("leaf")
            try leaf.respond(issuer: authority, responder: responder, to: file)
            let alone = try stage.problems([(leaf, file)]).map(\.text)
            expectEqual(alone.first?.contains("whose issuer is not in its file"), true, "\(alone)")
            let texts = try [leaf, authority].map {
                try String(contentsOfFile: $0.certificate, encoding: .utf8)
            }
            try texts.joined().write(toFile: leaf.certificate, atomically: true, encoding: .utf8)
            try expectEqual(stage.problems([(leaf, file)]).map(\.text), [])
            let gateway = try stage.gateway([(leaf, file)])
            defer { gateway.stop() }
            #expect(try Self.status(gateway, "leaf.test").contains("Cert Status: good"))
            try leaf.respond(issuer: authority, responder: wrong, to: file)
            let refused = try stage.problems([(leaf, file)]).map(\.text)
            expectEqual(refused.first?.contains("issuer has not signed"), true, "\(refused)")
        }
    }
}
