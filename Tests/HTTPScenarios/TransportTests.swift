import ConfigurationReading
import Expectations
import Foundation
import Gateway
import Glibc
import LoopbackKit
import Services
import Testing

extension Scenarios {
    /// What a real OpenSSL client and a TLS listener agree on: suites, groups, and certificates of
    /// clients that may have been revoked.
    struct TransportTests {
        /// What `openssl s_client` says and gets after one request.
        private static func ask(_ port: UInt16, _ options: [String]) throws -> String {
            let openssl = try #require(ChildProcess.tool("openssl"))
            let outcome = try ChildProcess.run(
                openssl,
                ["s_client", "-connect", "127.0.0.1:\(port)", "-ign_eof"] + options,
                input: "GET /x HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n"
            )
            return outcome.printed + outcome.complained
        }

        private static func problems(_ listen: String, in folder: String) throws -> [String] {
            let file = folder + "/portcullis.yaml"
            let text = TestGateway.text([("shop", ["127.0.0.1:9"])], listen: listen)
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            return Preparation.load(file).problems.map(\.text)
        }

        @Test func `openssl is served with what the lists name, and with nothing else`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let made = try TestCertificate.made.get()
            let old = "ECDHE-ECDSA-AES256-GCM-SHA384"
            let new = "TLS_AES_256_GCM_SHA384"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: """
                    address: 127.0.0.1:0, tls: { certificate: '\(made.certificate)', \
                    key: '\(made.key)', ciphers: [\(new), \(old)], curves: [P-384] }
                    """
            )
            defer { gateway.stop() }
            let rows: [(options: [String], suite: String?)] = [
                ([], new), (["-tls1_2"], old),
                (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256:\(old)"], old),
                (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], nil),
                (["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], nil),
                (["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256:\(new)"], new),
                (["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"], nil),
                (["-tls1_3", "-groups", "X25519:P-384"], new),
                (["-tls1_3", "-groups", "X25519:P-256"], nil),
                // The key of the certificate is on P-256, which the list need not have.
                (["-tls1_2", "-groups", "P-256:P-384"], old),
                (["-tls1_2", "-groups", "P-256"], nil),
            ]
            for (options, suite) in rows {
                let printed = try Self.ask(gateway.port, options)
                #expect(
                    printed.contains("Cipher is \(suite ?? "(NONE)")\n"),
                    "\(options) \(printed)"
                )
                expectEqual(printed.contains("HTTP/1.1 200"), suite != nil, "\(options) \(printed)")
                if suite != nil { #expect(printed.contains("secp384r1"), "\(options) \(printed)") }
            }
        }

        @Test func `check refuses a certificate that no listed suite can use`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let curve = try TestCertificate("curve", names: "DNS:curve.test", in: folder)
            let rsa = "\(folder)/rsa"
            try TestCertificate.openssl(
                [
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "20",
                    "-subj", "/CN=rsa", "-addext", "subjectAltName=DNS:rsa.test",
                    "-keyout", "\(rsa).key", "-out", "\(rsa).pem",
                ]
            )
            let both = """
                { certificate: '\(rsa).pem', key: '\(rsa).key' }, \
                { certificate: '\(curve.certificate)', key: '\(curve.key)' }
                """
            func problems(_ terms: String) throws -> [String] {
                let listen = "address: 127.0.0.1:0, tls: { certificates: [\(both)], \(terms) }"
                return try Self.problems(listen, in: folder)
            }
            let new = "TLS_AES_128_GCM_SHA256"
            let byRSA = "ECDHE-RSA-AES128-GCM-SHA256"
            let byECDSA = "ECDHE-ECDSA-AES128-GCM-SHA256"
            expectEqual(try problems("ciphers: [\(new), \(byRSA), \(byECDSA)]"), [])
            expectEqual(try problems("minimum: 1.3, ciphers: [\(new)]"), [])
            for (suite, file, kind) in [
                (byECDSA, rsa + ".pem", "an RSA"), (byRSA, curve.certificate, "an ECDSA"),
            ] {
                let found = try problems("ciphers: [\(new), \(suite)]")
                expectEqual(found.count, 1, "\(found)")
                let text =
                    "tls.ciphers: found no suite of TLS 1.2 that can use \(kind) key (\(file))"
                #expect(found.first?.contains(text) == true, "\(found)")
            }
            // OpenSSL has this group from 3.5 on.
            for problem in try problems("curves: [X25519MLKEM768, X25519]") {
                let text = "tls.curves: found group-unsupported: X25519MLKEM768, which OpenSSL 3."
                #expect(problem.contains(text), "\(problem)")
            }
        }

        /// An authority, two clients of it, and the lists that it makes.
        private struct Authority {
            let folder: String
            let own: TestCertificate
            let list: String

            init(in folder: String) throws {
                self.folder = folder
                own = try TestCertificate("authority", names: "DNS:ca.test", in: folder)
                list = folder + "/lists/authority.crl"
                try FileManager.default.createDirectory(
                    atPath: folder + "/lists",
                    withIntermediateDirectories: true
                )
                let text = """
                    [ca]
                    default_ca = own
                    [own]
                    database = \(folder)/index
                    default_md = sha256
                    certificate = \(own.certificate)
                    private_key = \(own.key)
                    """
                try text.write(toFile: folder + "/ca.conf", atomically: true, encoding: .utf8)
                try "".write(toFile: folder + "/index", atomically: true, encoding: .utf8)
            }

            func client(_ name: String) throws -> TestCertificate {
                try TestCertificate(
                    name,
                    names: "DNS:\(name).test",
                    in: folder,
                    more: ["-CA", own.certificate, "-CAkey", own.key]
                        + ["-addext", "basicConstraints=critical,CA:FALSE"]
                )
            }

            func revoke(_ client: TestCertificate) throws {
                let options = ["ca", "-config", folder + "/ca.conf", "-revoke", client.certificate]
                try TestCertificate.openssl(options)
            }

            /// Puts a new list in the place of the one before, as a tool that fetches it would.
            func publish(from start: String = "240101000000Z", until end: String) throws {
                try TestCertificate.openssl(
                    ["ca", "-config", folder + "/ca.conf", "-gencrl", "-out", list + ".new"]
                        + ["-crl_lastupdate", start, "-crl_nextupdate", end]
                )
                guard rename(list + ".new", list) == 0 else { throw POSIXError(.EIO) }
            }
        }

        private static let year2049: Int64 = 2_493_072_000

        @Test func `a revoked client is refused once a new list has come, without a reload`() throws
        {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let made = try TestCertificate.made.get()
            let authority = try Authority(in: folder)
            let (good, bad) = (try authority.client("good"), try authority.client("bad"))
            try authority.publish(until: "480101000000Z")
            let client = "ca: '\(authority.own.certificate)', crl: '\(folder)/lists'"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: """
                    address: 127.0.0.1:0, tls: { certificate: '\(made.certificate)', \
                    key: '\(made.key)', client: { \(client), require: required } }
                    """,
                more: "admin: { address: 127.0.0.1:0 }",
                certificatePace: .milliseconds(10)
            )
            defer { gateway.stop() }
            func ask(_ client: TestCertificate, _ more: [String] = []) throws -> String {
                let shown = ["-cert", client.certificate, "-key", client.key]
                return try Self.ask(gateway.port, shown + more)
            }
            for one in [good, bad] {
                let printed = try ask(one, ["-sess_out", one.key + ".session"])
                #expect(printed.contains("HTTP/1.1 200"), "\(printed)")
            }
            try authority.revoke(bad)
            try authority.publish(until: "490101000000Z")
            try gateway.server.wait {
                $0.tls.revocationLists.map(\.endsAtSeconds) == [Self.year2049]
            }
            for version in ["-tls1_2", "-tls1_3"] {
                let served = try ask(good, [version])
                #expect(served.contains("HTTP/1.1 200"), "\(served)")
                let refused = try ask(bad, [version])
                #expect(refused.contains("alert certificate revoked"), "\(refused)")
                #expect(!refused.contains("HTTP/1.1 200"), "\(refused)")
            }
            // A session from before does not open the door.
            let resumed = try ask(bad, ["-sess_in", bad.key + ".session"])
            #expect(!resumed.contains("HTTP/1.1 200"), "\(resumed)")
            let metrics = try gateway.askOperators("/metrics").text
            let line = #"issuer="CN=authority"} \#(Self.year2049)"#
            #expect(metrics.contains(line), "\(metrics)")
            // A list that can't be used leaves the one before in use.
            try "nonsense".write(toFile: authority.list, atomically: true, encoding: .utf8)
            try gateway.server.wait { $0.tls.fault?.contains("list-unreadable") == true }
            let still = try ask(bad)
            #expect(!still.contains("HTTP/1.1 200"), "\(still)")
            // One whose time is over refuses all.
            try authority.publish(until: "250101000000Z")
            try gateway.server.wait { $0.tls.fault == nil }
            let late = try ask(good)
            #expect(!late.contains("HTTP/1.1 200"), "\(late)")
        }

        @Test func `check says how old a list is, and which authority has none`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let made = try TestCertificate.made.get()
            let authority = try Authority(in: folder)
            func problems(_ ca: String, _ crl: String) throws -> [String] {
                let client = "ca: '\(ca)', crl: '\(crl)', require: optional"
                return try Self.problems(
                    """
                    address: 127.0.0.1:0, tls: { certificate: '\(made.certificate)', \
                    key: '\(made.key)', client: { \(client) } }
                    """,
                    in: folder
                )
            }
            func expect(_ found: [String], _ text: String) {
                expectEqual(found.count, 1, "\(found)")
                let place = "listen[0].tls.client.crl: found \(text)"
                #expect(found.first?.contains(place) == true, "\(found)")
            }
            let own = authority.own.certificate
            expect(try problems(own, folder + "/lists"), "list-unreadable: ")
            try authority.publish(until: "490101000000Z")
            expectEqual(try problems(own, authority.list), [])
            expect(try problems(made.certificate, authority.list), "list-missing: ")
            try authority.publish(until: "250101000000Z")
            let name = "a list of revoked certificates of CN=authority (\(authority.list))"
            expect(try problems(own, authority.list), "\(name) that ended ")
            try authority.publish(from: "480101000000Z", until: "490101000000Z")
            expect(try problems(own, authority.list), "\(name) that is not valid yet")
            // Half a day more, so that no second decides about the days.
            let soon = Date(timeIntervalSinceNow: 3.5 * 86_400)
            let time = DateFormatter()
            (time.dateFormat, time.timeZone) = ("yyMMddHHmmss'Z'", TimeZone(identifier: "UTC"))
            try authority.publish(until: time.string(from: soon))
            expect(try problems(own, authority.list), "\(name) that ends in 3d")
        }
    }
}
