import Expectations
import Foundation
import PortcullisClient
import PortcullisClientTesting
import Testing

/// The code of the catalogue is code that runs.
@Suite struct CatalogueTests {
    private static let page = URL(filePath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(
            path: "../../Sources/client/PortcullisClientTesting/PortcullisClientTesting.docc"
        )
        .standardized.appending(path: "PortcullisClientTesting.md")

    private static func lines(_ file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }

    @Test func `the code of the catalogue plays a device`() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-catalogue-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let authorityFile = folder.appending(path: "test-authority.pem")
        try Data(TestAuthority().pem.utf8).write(to: authorityFile)
        let gateway = try #require(URL(string: "http://127.0.0.1:1"))

        let authority = try TestAuthority(pem: String(contentsOf: authorityFile, encoding: .utf8))
        let service = try SoftwareAttestationService(
            appID: "ABCDE12345.com.example.shop",
            authority: authority,
            folder: folder
        )
        let session = PortcullisSession(
            PortcullisConfiguration(gateway: gateway),
            service: service,
            store: FileEnrolmentStore(file: folder.appending(path: "record"))
        )

        let keyID = try await service.generateKey()
        let hash = Data(repeating: 7, count: 32)
        #expect(try await !service.attestKey(keyID, clientDataHash: hash).isEmpty)
        #expect(try await !service.generateAssertion(keyID, clientDataHash: hash).isEmpty)
        await session.close()
    }

    @Test func `the short form of a session has its keys and its record where the long form has`()
        async throws
    {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-catalogue-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let gateway = try #require(URL(string: "http://127.0.0.1:1"))
        let authority = try TestAuthority()
        let session = try PortcullisSession(
            gateway: gateway,
            appID: "ABCDE12345.com.example.shop",
            authority: authority,
            folder: folder
        )
        // Nobody is there: a key is made, and its enrolment waits for the gateway.
        let events = session.events
        async let absence = session.prewarm()
        for await case .enrolmentHeld(let hold) in events {
            expectEqual(hold.cause, .gatewayUnavailable)
            break
        }
        #expect(await absence != nil)
        let keys = try FileManager.default
            .contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".json") }
        expectEqual(keys.count, 1)
        let record = folder.appending(path: "record-127.0.0.1_1")
        #expect(FileManager.default.fileExists(atPath: record.path))
        await session.close()
    }

    @Test func `the code of the catalogue plays a debugging build`() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-catalogue-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let gateway = try #require(URL(string: "http://127.0.0.1:1"))
        let file = folder.appending(path: "debug-device")

        let device = DebugDevice(
            appID: "ABCDE12345.com.example.shop",
            keptIn: FileEnrolmentStore(file: file)
        )
        let session = try await PortcullisSession(gateway: gateway, debugDevice: device)

        #expect(try !FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        await session.close()
    }

    @Test func `the code of the catalogue is the code above`() throws {
        let code = try Self.lines(URL(filePath: #filePath))
        let blocks = try Self.lines(Self.page).split(separator: "```swift").dropFirst()
        #expect(!blocks.isEmpty)
        for block in blocks {
            let lines = block.prefix { $0 != "```" }
            #expect(code.indices.contains { code[$0...].starts(with: lines) })
        }
    }
}
