import ConfigurationReading
import Expectations
import Foundation
import Gateway
import Glibc
import LoopbackKit
import Services
import Testing

extension Scenarios {
    /// Certificates of listeners: by name, and as their files change.
    struct CertificateTests {
        private static let tlsBlock = "tls: { certificates: ["

        /// The CN of the certificate that a client gets.
        private static func shown(_ gateway: TestGateway, _ name: String? = nil) throws -> String {
            let server = name.map { ["-servername", $0] } ?? ["-noservername"]
            let address = "127.0.0.1:\(gateway.port)"
            let openssl = try #require(ChildProcess.tool("openssl"))
            let arguments = ["s_client", "-connect", address] + server
            let printed = try ChildProcess.run(openssl, arguments).printed
            let line = printed.split(separator: "\n").first { $0.hasPrefix("subject=") }
            return String(try #require(line, "\(printed)").dropFirst("subject=CN = ".count))
        }

        /// A gateway that shows these certificates, each with what stands behind its files.
        private static func gateway(
            _ certificates: [(TestCertificate, String)],
            _ origin: TestOrigin,
            log: String = "{ access: off, level: error }"
        ) throws -> TestGateway {
            try TestGateway(
                [("shop", [origin.address])],
                listen: listen(certificates),
                log: log,
                certificatePace: .milliseconds(10)
            )
        }

        private static func listen(_ certificates: [(TestCertificate, String)]) -> String {
            let list = certificates.map {
                "{ certificate: '\($0.certificate)', key: '\($0.key)'\($1) }"
            }
            return "address: 127.0.0.1:0, \(tlsBlock)\(list.joined(separator: ", "))] }"
        }

        @Test func `clients get the certificate for the name that they ask for`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let first = try TestCertificate("first", names: "DNS:first.test", in: folder)
            let wild = try TestCertificate("wild", names: "DNS:*.wild.test", in: folder)
            let said = try TestCertificate("said", names: "DNS:unused.test", in: folder)
            let gateway = try Self.gateway(
                [(first, ""), (wild, ""), (said, ", names: [said.test, one.wild.test]")],
                origin
            )
            defer { gateway.stop() }
            let wanted: [(String?, String)] = [
                (nil, "first"), ("first.test", "first"), ("two.wild.test", "wild"),
                ("one.wild.test", "said"), ("said.test", "said"), ("unused.test", "first"),
                ("nobody.test", "first"), ("a.two.wild.test", "first"),
            ]
            for (name, subject) in wanted {
                try expectEqual(Self.shown(gateway, name), subject, "\(name ?? "no name")")
            }
        }

        @Test func `a certificate that is renewed on disk is shown without a reload`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let first = try TestCertificate("first", names: "DNS:first.test", in: folder)
            let other = try TestCertificate("other", names: "DNS:other.test", in: folder)
            let gateway = try Self.gateway([(first, ""), (other, "")], origin)
            defer { gateway.stop() }
            let before = try gateway.server.snapshot().tls.certificates
            expectEqual(before.map(\.names), [["first.test"], ["other.test"]])
            let next = try TestCertificate("next", names: "DNS:next.test", days: 9, in: folder)
            // One file after the other, as ACME clients do.
            for (new, old) in [(next.key, other.key), (next.certificate, other.certificate)] {
                expectEqual(rename(new, old), 0)
            }
            try gateway.server.wait { $0.tls.certificates.last?.names == ["next.test"] }
            try expectEqual(Self.shown(gateway, "next.test"), "next")
            try expectEqual(Self.shown(gateway, "first.test"), "first")
            let after = try #require(try gateway.server.snapshot().tls.certificates.last)
            #expect(after.expiresAtSeconds < before[1].expiresAtSeconds)
        }

        @Test func `a broken pair leaves the previous one in use, and operators are told`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let first = try TestCertificate("first", names: "DNS:first.test", in: folder)
            let gateway = try Self.gateway([(first, "")], origin)
            defer { gateway.stop() }
            let kept = try String(contentsOfFile: first.key, encoding: .utf8)
            let wrong = try TestCertificate("wrong", names: "DNS:wrong.test", in: folder)
            expectEqual(rename(wrong.key, first.key), 0)
            try gateway.server.wait { $0.tls.refusals == 1 }
            let tls = try gateway.server.snapshot().tls
            expectEqual(tls.fault?.contains("key-mismatch"), true)
            expectEqual(tls.fault?.contains("listen[0].tls.certificates[0].key"), true)
            try expectEqual(Self.shown(gateway), "first")
            // A file that is gone changes nothing either; its return does.
            expectEqual(unlink(first.key), 0)
            try kept.write(toFile: wrong.key, atomically: true, encoding: .utf8)
            chmod(wrong.key, 0o600)
            expectEqual(rename(wrong.key, first.key), 0)
            try gateway.server.wait { $0.tls.fault == nil }
            try expectEqual(gateway.server.snapshot().tls.refusals, 1)
            try expectEqual(Self.shown(gateway), "first")
        }

        @Test func `a renewed key that every user may read is refused, as by a reload`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let first = try TestCertificate("first", names: "DNS:first.test", in: folder)
            let gateway = try Self.gateway([(first, "")], origin)
            defer { gateway.stop() }
            let renewed = try TestCertificate("renewed", names: "DNS:renewed.test", in: folder)
            chmod(renewed.key, 0o644)
            expectEqual(rename(renewed.key, first.key), 0)
            expectEqual(rename(renewed.certificate, first.certificate), 0)
            try gateway.server.wait { $0.tls.fault?.contains("a key with mode 644") == true }
            let fault = try gateway.server.snapshot().tls.fault
            #expect(
                fault?.contains("listen[0].tls.certificates[0].key: ") == true,
                "\(fault ?? "")"
            )
            #expect(fault?.contains("chmod o= \(first.key)") == true, "\(fault ?? "")")
            try expectEqual(Self.shown(gateway), "first")
            chmod(first.key, 0o600)
            try gateway.server.wait { $0.tls.fault == nil }
            try expectEqual(Self.shown(gateway), "renewed")
        }

        @Test func `a reload adds and removes certificates of a listener`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let first = try TestCertificate("first", names: "DNS:first.test", in: folder)
            let other = try TestCertificate("other", names: "DNS:other.test", in: folder)
            let gateway = try Self.gateway([(first, "")], origin)
            defer { gateway.stop() }
            try expectEqual(Self.shown(gateway, "other.test"), "first")
            for (number, list) in [[first, other], [other]].enumerated() {
                let text = TestGateway.text(
                    [("shop", [origin.address])],
                    listen: Self.listen(list.map { ($0, "") })
                )
                let file = gateway.folder + "/portcullis.yaml"
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                gateway.server.readAgain()
                try gateway.server.wait {
                    $0.configuration.generation == UInt64(number + 2)
                }
                try expectEqual(Self.shown(gateway, "other.test"), "other")
                try expectEqual(Self.shown(gateway, "first.test"), list[0].name)
            }
        }

        @Test func `check tells what is wrong with each of several certificates`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let one = try TestCertificate("one", names: "DNS:one.test,DNS:both.test", in: folder)
            let two = try TestCertificate("two", names: "DNS:both.test", days: 3, in: folder)
            let bare = try TestCertificate("bare", names: "IP:127.0.0.1", in: folder)
            func problems(_ certificates: [(TestCertificate, String)]) throws -> [String] {
                let file = folder + "/portcullis.yaml"
                let text = TestGateway.text(
                    [("shop", ["127.0.0.1:9"])],
                    listen: Self.listen(certificates)
                )
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                return Preparation.load(file).problems.map(\.text)
            }
            func has(_ problems: [String], _ parts: String...) -> Bool {
                problems.contains { problem in parts.allSatisfy(problem.contains) }
            }
            let good = try problems([(one, ""), (two, ", names: [other.test]")])
            #expect(has(good, "warning: ", "certificates[1].names", "other.test, which is not in"))
            #expect(has(good, "warning: ", "certificates[1].certificate", "that ends in "))
            #expect(!good.contains { $0.contains("both.test") })
            let twice = try problems([(one, ""), (two, ""), (bare, "")])
            #expect(has(twice, "warning: ", "certificates[1].certificate", "found both.test"))
            #expect(has(twice, "certificates[2].certificate: found a certificate without a name"))
            let said = try problems([(one, ", names: [a.test]"), (two, ", names: [A.test]")])
            #expect(has(said, "certificates[1].names[0]: found a.test, for which"))
            let crossed = try problems([
                (TestCertificate(one.certificate, two.key), ""),
                (TestCertificate(two.certificate, one.key), ""),
            ])
            for place in 0...1 {
                #expect(has(crossed, "certificates[\(place)].key: found key-mismatch"))
            }
            let names = "\(two.key) is not the key of the first certificate in \(one.certificate)"
            #expect(has(crossed, names))
        }

        @Test func `check says which file holds a key and which a certificate`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let one = try TestCertificate("one", names: "DNS:one.test", in: folder)
            // All users may read a certificate, also one that stands in a key's place.
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o644],
                ofItemAtPath: one.certificate
            )
            func problem(_ certificate: String, _ key: String) throws -> String {
                let file = folder + "/portcullis.yaml"
                let text = TestGateway.text(
                    [("shop", ["127.0.0.1:9"])],
                    listen: Self.listen([(TestCertificate(certificate, key), "")])
                )
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                let errors = Preparation.load(file).errors.map(\.text)
                expectEqual(errors.count, 1, "\(errors)")
                return errors.first ?? ""
            }
            let exchanged = try problem(one.key, one.certificate)
            #expect(exchanged.contains("certificate and key are exchanged"), "\(exchanged)")
            #expect(
                exchanged.hasSuffix("use certificate: \(one.certificate), key: \(one.key)"),
                "\(exchanged)"
            )
            let key = try problem(one.key, one.key)
            #expect(key.contains("\(one.key) holds a private key and no certificate"), "\(key)")
            let certificate = try problem(one.certificate, one.certificate)
            #expect(
                certificate.contains("\(one.certificate) holds a certificate and no private key"),
                "\(certificate)"
            )
        }
    }
}

extension TestCertificate {
    fileprivate init(_ certificate: String, _ key: String) {
        self.certificate = certificate
        self.key = key
    }

    fileprivate var name: String {
        URL(filePath: certificate).deletingPathExtension().lastPathComponent
    }
}
