import AppAttest
import Cryptography
import Expectations
import Foundation
import PortcullisClient
import PortcullisClientTesting
import Testing

/// What the service makes is judged by the gateway's own verifier.
@Suite struct SoftwareAttestationServiceTests {
    private static let appID = "ABCDE12345.com.example.shop"
    private static let app = ExpectedApp(
        id: appID,
        environments: [.production],
        isMacOS: false,
        builds: .any
    )
    private let authority: TestAuthority
    private let hash = Data(SHA256.digest(of: Array("challenge".utf8)).array)

    init() throws { authority = try TestAuthority() }

    private func service(
        folder: URL? = nil,
        device: SoftwareAttestationService.Device = .iPhone,
        build: SoftwareAttestationService.Build? = nil
    ) throws -> SoftwareAttestationService {
        try SoftwareAttestationService(
            appID: Self.appID,
            authority: authority,
            folder: folder,
            device: device,
            build: build
        )
    }

    private func verified(
        _ object: Data,
        _ keyID: String,
        roots: [X509Certificate],
        apps: [ExpectedApp] = [app]
    ) throws -> VerifiedAttestation {
        try UnverifiedAttestation(bytes: object).verified(
            clientDataHash: hash,
            keyID: try #require(KeyID(base64: keyID)),
            apps: apps,
            roots: roots,
            at: UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        )
    }

    private func verified(
        _ assertion: Data,
        _ key: VerifiedAttestation,
        after counter: UInt32
    ) throws -> VerifiedAssertion {
        return try UnverifiedAssertion(bytes: assertion).verified(
            clientDataHash: hash,
            key: key.publicKey,
            app: key.app.hash,
            after: SignCounter(rawValue: counter)
        )
    }

    private func temporaryFolder() -> URL {
        FileManager.default.temporaryDirectory.appending(path: "portcullis-keys-\(UUID())")
    }

    @Test func `attestation and assertions verify under the root of the test authority`()
        async throws
    {
        let service = try service()
        let keyID = try await service.generateKey()
        let object = try await service.attestKey(keyID, clientDataHash: hash)
        let roots = try X509Certificate.certificates(pem: authority.rootPEM)
        let key = try verified(object, keyID, roots: roots)
        expectEqual(key.details.appID, Self.appID)
        expectEqual(key.extensions.bundleVersion, nil)
        for counter in UInt32(1)...3 {
            let assertion = try await service.generateAssertion(keyID, clientDataHash: hash)
            let proof = try verified(assertion, key, after: counter - 1)
            expectEqual(proof.counter, SignCounter(rawValue: counter))
        }
    }

    @Test func `a verifier that trusts Apple alone refuses what software made`() async throws {
        let service = try service()
        let keyID = try await service.generateKey()
        let object = try await service.attestKey(keyID, clientDataHash: hash)
        let refusal = #expect(throws: AttestationRefusal.self) {
            try verified(object, keyID, roots: [AppleRoots.appAttestation])
        }
        expectEqual(refusal?.reason, .certificateUntrusted)
    }

    @Test func `a build stands in every object`() async throws {
        let service = try service(build: .init(validationCategory: 2, bundleVersion: "1314"))
        let keyID = try await service.generateKey()
        let object = try await service.attestKey(keyID, clientDataHash: hash)
        let roots = try X509Certificate.certificates(pem: authority.rootPEM)
        let key = try verified(object, keyID, roots: roots)
        expectEqual(key.extensions.validationCategory, .testFlight)
        expectEqual(key.extensions.bundleVersion, "1314")
        let assertion = try await service.generateAssertion(keyID, clientDataHash: hash)
        try expectEqual(verified(assertion, key, after: 0).extensions, key.extensions)
    }

    /// Apple's six checks of a receipt. The receipts of software were empty.
    @Test func `the receipt in an attestation verifies, and is of the attested key`() async throws {
        let service = try service()
        let keyID = try await service.generateKey()
        let object = try await service.attestKey(keyID, clientDataHash: hash)
        let roots = try X509Certificate.certificates(pem: authority.rootPEM)
        let key = try verified(object, keyID, roots: roots)
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        let receipt = try UnverifiedReceipt(bytes: key.receipt).verified(
            appIDs: [Self.appID],
            key: key.publicKey,
            roots: roots,
            freshness: UnverifiedReceipt.Freshness(now: now, secondsMax: 300)
        )
        expectEqual(receipt.fields.kind, .attest)
        expectEqual(receipt.fields.environment, "production")
        expectEqual(receipt.fields.clientHash, Array(hash))
        let lifetime = receipt.fields.expirationTime.map { $0.seconds - now.seconds }
        #expect(abs((lifetime ?? 0) - 90 * 86_400) < 300)
        let refusal = #expect(throws: ReceiptRefusal.self) {
            try UnverifiedReceipt(bytes: key.receipt).verified(
                appIDs: [Self.appID],
                key: key.publicKey,
                roots: [AppleRoots.rootG3],
                freshness: nil
            )
        }
        expectEqual(refusal?.reason, .certificateUntrusted)
    }

    @Test(arguments: [(SoftwareAttestationService.Device.iPhone, "iphoneos"), (.mac, "macosx")])
    func `a verifier that expects Macs takes both kinds of device, each with its own rules`(
        device: SoftwareAttestationService.Device,
        platform: String
    ) async throws {
        let service = try service(device: device)
        let keyID = try await service.generateKey()
        let object = try await service.attestKey(keyID, clientDataHash: hash)
        let roots = try X509Certificate.certificates(pem: authority.rootPEM)
        let universal = ExpectedApp(
            id: Self.appID,
            environments: [.production],
            isMacOS: true,
            builds: .any
        )
        let key = try verified(object, keyID, roots: roots, apps: [universal])
        expectEqual(key.details.platform, platform)
        expectEqual((key.details.accessControl != nil), device == .mac)
    }

    @Test func `a key is attested once, signs only then, and is unknown when it was lost`()
        async throws
    {
        let folder = temporaryFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let service = try service(folder: folder)
        let keyID = try await service.generateKey()
        await #expect(throws: AttestationServiceError.invalidKey) {
            try await service.generateAssertion(keyID, clientDataHash: hash)
        }
        _ = try await service.attestKey(keyID, clientDataHash: hash)
        await #expect(throws: AttestationServiceError.invalidKey) {
            try await service.attestKey(keyID, clientDataHash: hash)
        }
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.removeItem(at: folder.appending(path: file))
        }
        await #expect(throws: AttestationServiceError.invalidKey) {
            try await service.generateAssertion(keyID, clientDataHash: hash)
        }
        await #expect(throws: AttestationServiceError.invalidKey) {
            try await service.attestKey("../../etc/passwd", clientDataHash: hash)
        }
    }

    @Test func `keys in a folder outlive the process, and no counter is given twice`()
        async throws
    {
        let folder = temporaryFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let first = try service(folder: folder)
        let keyID = try await first.generateKey()
        let object = try await first.attestKey(keyID, clientDataHash: hash)
        let roots = try X509Certificate.certificates(pem: authority.rootPEM)
        let key = try verified(object, keyID, roots: roots)
        let services = [first, try service(folder: folder), try service(folder: folder)]
        let hash = self.hash
        let assertions = try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let service = services[number % services.count]
                    return try await service.generateAssertion(keyID, clientDataHash: hash)
                }
            }
            return try await group.reduce(into: [Data]()) { $0.append($1) }
        }
        let counters = try assertions.map { try verified($0, key, after: 0).counter.rawValue }
        expectEqual(counters.sorted(), Array(1...60))
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path)[.posixPermissions]
        #expect(mode as? Int == 0o700)
    }
}
