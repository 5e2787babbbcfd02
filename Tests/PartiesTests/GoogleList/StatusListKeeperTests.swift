import Expectations
import Foundation
import KeyAttestation
import OutboundCalls
import Rules
import TestSupport
import Testing
import Verification

@testable import Parties

/// Google's list as a gateway keeps it, by a Google that answers as a test says.
@Suite struct StatusListKeeperTests {
    /// A keeper whose only copy on disk is in a folder of its own.
    private final class Stand {
        let google = ScriptedTransport()
        let list = CurrentStatusList()
        let keeper: StatusListKeeper
        private let folder: URL

        init(_ settings: PartySettings = Stand.settings()) throws {
            folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let copies = folder.appending(path: "p.db").path
            let context = try PartyContext(google, at: 1_800_000_000, copies: copies)
            keeper = StatusListKeeper(settings, of: list, context)
            keeper.start()
        }

        func end() {
            keeper.end()
            try? FileManager.default.removeItem(at: folder)
        }

        static func settings(
            _ url: String = "https://google.test/status",
            isAndroid: Bool = true
        ) -> PartySettings {
            var google = GoogleSettings()
            google.statusListURL = url
            var app = AppPolicy(id: "com.example.shop", environments: [])
            if isAndroid { app.android = AndroidDemands(AndroidDemands.Settings()) }
            return PartySettings(apple: AppleSettings(), google: google, apps: [app], proofs: [])
        }

        var copy: String? {
            FileManager.default.contents(atPath: folder.appending(path: "p.db.google-status").path)
                .map { String(decoding: $0, as: UTF8.self) }
        }

        func answer(_ entries: Int) {
            let all = (0..<entries).map { "\"a\($0)\": {\"status\": \"REVOKED\"}" }
            google.answer(200, "{\"entries\": {\(all.joined(separator: ", "))}}", ["etag": "\"x\""])
        }
    }

    @Test func `without an Android app there is no list, and Google is not asked`() throws {
        let stand = try Stand(Stand.settings(isAndroid: false))
        defer { stand.end() }
        expectEqual(stand.list.known, nil)
        stand.keeper.loaded(Stand.settings())
        #expect(eventually { stand.google.requests.count == 1 })
    }

    @Test func `the release's list is in use until Google's comes, which has a copy`() throws {
        let stand = try Stand()
        defer { stand.end() }
        expectEqual(stand.list.known?.source, .release)
        #expect(eventually { stand.google.requests.count == 1 })
        stand.answer(3)
        #expect(eventually { stand.list.known?.source == .google })
        expectEqual(stand.list.newest?.list.count, 3)
        #expect(eventually { stand.copy?.contains("\nurl https://google.test/status\n") == true })
    }

    @Test func `another address has another list, and is asked without the tag`() throws {
        let stand = try Stand()
        defer { stand.end() }
        #expect(eventually { stand.google.requests.count == 1 })
        stand.answer(3)
        #expect(eventually { stand.list.known?.source == .google })
        stand.keeper.loaded(Stand.settings("https://mirror.test/status"))
        #expect(eventually { stand.google.requests.count == 2 })
        expectEqual(stand.list.known?.source, .release)
        expectEqual(stand.google.requests[1].url, "https://mirror.test/status")
        #expect(!stand.google.requests[1].fields.contains { $0.name == "If-None-Match" })
    }

    @Test func `what comes after the end changes nothing`() throws {
        let stand = try Stand()
        defer { stand.end() }
        #expect(eventually { stand.google.requests.count == 1 })
        stand.keeper.end()
        stand.answer(3)
        // The keeper has seen the answer once it has taken the reload that follows.
        stand.keeper.loaded(Stand.settings(isAndroid: false))
        #expect(eventually { stand.list.known == nil })
        expectEqual(stand.copy, nil)
    }
}
