import AppleStandIn
import ConfigurationReading
import Expectations
import Foundation
import LoopbackKit
import Testing

@testable import Parties

/// A party that no gateway has: this folder, and the line that registers it.
@Suite struct FictitiousPartyTests {
    private static let parties = ProofParties.standard + [LibraryParty.self]

    /// A gateway that asks a library, and an origin.
    private final class Stand {
        let folder: URL
        let library: StandInServer
        let origin: TestOrigin
        let file: String

        init(_ settings: String, library url: String? = nil) throws {
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            library = try StandInServer(folder: folder.path)
            origin = try TestOrigin()
            file = folder.appendingPathComponent("portcullis.yaml").path
            let url = url ?? library.testURL(.turnstile)
            try """
            listen: [{ address: 127.0.0.1:0 }]
            admin: { address: 127.0.0.1:0 }
            event_loops: 1
            origins: { books: { servers: ["\(origin.address)"] } }
            store: { sqlite: "portcullis.db" }
            proofs:
              card: { kind: library, url: "\(url)", roots: "\(library.rootFile)"\(settings) }
            default: { origin: books, mode: enforce, accept: [card] }
            """.write(toFile: file, atomically: true, encoding: .utf8)
        }

        func end() {
            library.stop()
            origin.stop()
            try? FileManager.default.removeItem(at: folder)
        }
    }

    private static func ask(
        _ port: UInt16,
        _ target: String,
        _ fields: String = ""
    ) throws -> WireResponse {
        let wire = try Wire(port: port)
        defer { wire.close() }
        try wire.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
        return try wire.readFinalResponse(to: "GET")
    }

    @Test func `a request waits for a party of one folder and one line`() throws {
        let stand = try Stand(", branch: north")
        defer { stand.end() }
        let gateway = try HostedGateway(file: stand.file, parties: Self.parties)
        defer {
            gateway.stop()
            _ = gateway.exitStatus()
        }
        func show(_ card: String) throws -> WireResponse {
            try Self.ask(gateway.port, "/shelf", "X-Library-Card: \(card)\r\n")
        }
        stand.library.playTests(.status(200, body: #"{"branch": "north"}"#))
        try expectEqual(show("c1").status, 200)
        // Each card is good once, as the store remembers.
        try expectEqual(show("c1").status, 401)
        stand.library.playTests(.status(200, body: #"{"branch": "south"}"#))
        try expectEqual(show("c2").status, 403)
        stand.library.playTests(.status(200, body: "{}"))
        try expectEqual(show("c3").status, 401)
        stand.library.playTests(.status(500))
        try expectEqual(show("c4").status, 503)
        let metrics = try Self.ask(gateway.adminPort, "/metrics").text
        for line in [
            #"portcullis_proof_verdicts_total{proof="card",verdict="good"} 1"#,
            #"portcullis_proof_verdicts_total{proof="card",verdict="other-branch"} 1"#,
            #"portcullis_proof_verdicts_total{proof="card",verdict="server-error"} 1"#,
            "portcullis_library_cards_total 5", "portcullis_library_open 1",
        ] {
            #expect(metrics.contains(line), "\(line)")
        }
        #expect(try Self.ask(gateway.adminPort, "/status").text.contains(#""library_cards": 5"#))
    }

    @Test func `its settings are read as those of every other`() throws {
        let stand = try Stand(", service: turnstile, rate: 0/s", library: "http://plain.example")
        defer { stand.end() }
        let problems = ConfigurationLoader.load(stand.file, parties: Self.parties).problems
            .map(\.text)
        for found in [
            "proofs.card.url: found \"http://plain.example\"",
            "proofs.card.rate: found \"0/s\"",
            "proofs.card.service: found it with kind: library, where it has no effect",
        ] {
            #expect(problems.contains { $0.contains(found) }, "\(found) of \(problems)")
        }
        // A gateway without the line does not know the kind.
        let unknown = ConfigurationLoader.load(stand.file).problems.map(\.text)
        #expect(unknown.contains { $0.contains("found \"library\"; use jwt | siteverify") })
    }
}
