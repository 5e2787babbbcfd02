import AppAttest
import Cryptography
import Expectations
import Foundation
import PortcullisClientTesting
import Testing

@Suite struct TestAuthorityTests {
    @Test func `an authority is read from what it writes, in any order`() throws {
        let authority = try TestAuthority()
        let again = try TestAuthority(pem: authority.pem)
        expectEqual(again.rootPEM, authority.rootPEM)
        expectEqual(again.pem, authority.pem)
        let key = try #require(authority.pem.range(of: "-----BEGIN PRIVATE KEY-----"))
        let turned = authority.pem[key.lowerBound...] + authority.rootPEM
        try expectEqual(TestAuthority(pem: String(turned)).rootPEM, authority.rootPEM)
    }

    @Test func `the root is a certificate that OpenSSL reads, valid for ten years`() throws {
        let made = Date(timeIntervalSince1970: 1_790_000_000)
        let authority = try TestAuthority(madeAt: made)
        let roots = try X509Certificate.certificates(pem: authority.rootPEM)
        let root = try #require(roots.first)
        expectEqual(roots.count, 1)
        expectEqual(root.notBefore.seconds, 1_790_000_000 - 86_400)
        let years: Int64 = 3_650 * 86_400
        expectEqual(root.notAfter.seconds, 1_790_000_000 + years)
        expectEqual(root.subject[.organization], "Portcullis test authority")
        // RFC 5280 §4.1.2.5 wants another form of time from 2050 on.
        let late = try TestAuthority(madeAt: Date(timeIntervalSince1970: 2_500_000_000))
        let lateRoots = try X509Certificate.certificates(pem: late.rootPEM)
        let end = 2_500_000_000 + years
        expectEqual(lateRoots.map(\.notAfter.seconds), [end])
    }

    @Test func `what is no authority says what is missing`() throws {
        let (one, other) = (try TestAuthority(), try TestAuthority())
        let key = { (authority: TestAuthority) in
            String(authority.pem.dropFirst(authority.rootPEM.count))
        }
        let cases: [(String, TestAuthority.Failure)] = [
            ("", .blockMissing("CERTIFICATE")),
            (one.rootPEM, .blockMissing("PRIVATE KEY")),
            (key(one), .blockMissing("CERTIFICATE")),
            (one.rootPEM + key(other), .otherKey),
            (
                "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n" + key(one),
                .certificateMalformed
            ),
            (
                "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n" + key(one),
                .certificateMalformed
            ),
            (
                one.rootPEM + "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n",
                .keyUnreadable
            ),
        ]
        for (text, failure) in cases {
            #expect(throws: failure) { try TestAuthority(pem: text) }
        }
    }

    /// The program where it is installed.
    private static let openssl = ["/usr/bin/openssl", "/usr/local/bin/openssl"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test(.enabled(if: openssl != nil), arguments: ["prime256v1", "secp384r1"])
    func `an authority that OpenSSL made attests keys`(curve: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "ca-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let process = Process()
        process.executableURL = URL(filePath: try #require(Self.openssl))
        process.currentDirectoryURL = folder
        process.standardError = FileHandle.nullDevice
        process.arguments =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:\(curve)", "-nodes"]
            + ["-subj", "/CN=Shop test devices", "-days", "3650"]
            + ["-keyout", "key.pem", "-out", "root.pem"]
        try process.run()
        process.waitUntilExit()
        expectEqual(process.terminationStatus, 0)
        let texts = try ["key.pem", "root.pem"].map {
            try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
        }
        let authority = try TestAuthority(pem: texts.joined())
        let service = try SoftwareAttestationService(appID: "A.b", authority: authority)
        let keyID = try await service.generateKey()
        let hash = Data(repeating: 7, count: 32)
        let object = try await service.attestKey(keyID, clientDataHash: hash)
        let app = ExpectedApp(
            id: "A.b",
            environments: [.production],
            isMacOS: false,
            builds: .any
        )
        let verified = try UnverifiedAttestation(bytes: object).verified(
            clientDataHash: hash,
            keyID: try #require(KeyID(base64: keyID)),
            apps: [app],
            roots: try X509Certificate.certificates(pem: texts[1]),
            at: UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        )
        expectEqual(verified.root.pem, texts[1])
    }
}
