import AppAttest
import AppleStandIn
import Encodings
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Google's list of revoked certificates, at a stand-in.
    @Suite(.enabled(if: Scenario.isPossible)) struct StatusLists {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              counter: { window: 64 }
              accept: [assertion, session]
              apps: [com.example.shop]
            """
        private static let signing = SigningForm.lines(.all, headers: [])
        private static let sessions = "/.well-known/app-attest/sessions"
        /// Of the certificate that attests the phones' keys.
        private static let serial: UInt64 = 0x0C35_747A_0844_70C3
        private static let empty = #"{"entries": {}}"#
        private static let revoked =
            #"{"entries": {"0C35747A084470C3": {"status": "SUSPENDED", "reason": "#
            + #""KEY_COMPROMISE"}}}"#

        /// A gateway that asks for the list each second.
        private final class Stand {
            let scenario: Scenario
            let google: StandInServer
            private let origin: RecordingOrigin
            private(set) var gateway: GatewayProcess
            private(set) var client: HTTPClient
            private let device: SoftwareDevice

            init(_ list: String = StatusLists.empty) throws {
                scenario = try Scenario()
                google = try StandInServer(folder: scenario.folder.path)
                google.serveStatusList(list, fields: [("Cache-Control", "max-age=1")])
                origin = try scenario.origin()
                var phone = SoftwarePhone()
                phone.serial = StatusLists.serial
                device = SoftwareDevice(
                    authority: Scenario.authority,
                    package: "com.example.shop",
                    phone: phone
                )
                try scenario.configure(
                    origin: origin.address,
                    apps: StatusLists.app,
                    rules: StatusLists.rules,
                    more: "google: " + google.googleSettings(", min_interval: 1s")
                )
                gateway = try scenario.serve()
                client = gateway.client()
            }

            func end() {
                google.stop()
                scenario.end()
            }

            /// Starts the gateway again on the same store.
            func restart(_ change: () throws -> Void = {}) throws {
                try expectEqual(gateway.stop(), 0)
                try change()
                gateway = try scenario.serve()
                client = gateway.client()
            }

            func makeKey() -> SoftwareKey { device.makeKey() }

            /// Waits for the state of the list that the metrics show.
            func wait(for sample: String) throws {
                var page = ""
                let isThere = try eventually {
                    page = try gateway.adminClient().send("GET", "/metrics").text
                    return page.contains("portcullis_" + sample)
                }
                let lines = page.split(separator: "\n").filter { $0.contains("status_list") }
                try #require(isThere, "no \(sample): \(lines)")
            }

            func enrol(_ key: SoftwareKey) throws -> Answer { try gateway.enrol(key, client) }

            func send(_ key: inout SoftwareKey, _ target: String = "/v1/orders") throws -> Answer {
                try gateway.post(target, by: &key, client, signing: signing)
            }

            func send(_ session: inout SoftwareSession) throws -> Answer {
                let request = SoftwareKey.Request(method: "POST", target: "/v1/orders")
                guard let proof = session.proof(of: request, signing: signing) else {
                    throw ChildProcess.Failure(description: "no proof")
                }
                return try client.send(request.method, request.target, proof.fields)
            }

            func command(_ words: String...) throws -> String {
                let options = ["--config", scenario.path("portcullis.yaml")]
                let all = words.prefix(2) + options + words.dropFirst(2)
                return try scenario.portcullis(Array(all)).printed
            }
        }

        private static var app: String {
            "  - { android: com.example.shop, signers: [\"\(Hex.text(SoftwarePhone.signer))\"], "
                + "environments: [test], test_root: root.pem }"
        }

        @Test func `a phone whose certificate comes into the list is refused, with its session`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            try stand.wait(for: #"google_status_list_entries{source="google"} 0"#)
            var key = stand.makeKey()
            try expectEqual(stand.enrol(key).status, 201)
            try expectEqual(stand.send(&key).status, 200)
            let opened = try stand.send(&key, Self.sessions)
            var session = try #require(SoftwareSession(answer: opened.body), "\(opened.text)")
            try expectEqual(stand.send(&session).status, 200)

            stand.google.serveStatusList(Self.revoked)
            #expect(try eventually { try stand.send(&key).reason == "key-revoked" })
            try expectEqual(stand.send(&session).status, 403)
            let refused = try stand.enrol(stand.makeKey())
            #expect(refused.status == 403 && refused.reason == "certificate-revoked")
            let shown = try stand.command("keys", "show", key.keyID.base64)
            let entry = "c35747a084470c3 SUSPENDED (KEY_COMPROMISE)"
            #expect(shown.contains(#""listed": "\#(entry)""#), "\(shown)")
            let history = try stand.command("keys", "history")
            #expect(history.contains("portcullis\tGoogle's status list: \(entry)"), "\(history)")
            try stand.wait(for: #"keys_listed_total{change="revoked"} 1"#)

            // A suspension that was lifted.
            stand.google.serveStatusList(Self.empty)
            #expect(try eventually { try stand.send(&key).status == 200 })
            try stand.wait(for: #"keys_listed_total{change="restored"} 1"#)
        }

        @Test func `the list is asked for as Google's server wants it, and a 304 keeps it`() throws
        {
            let stand = try Stand()
            defer { stand.end() }
            try stand.wait(for: #"google_status_list_fetches_total{outcome="unchanged"}"#)
            let calls = stand.google.statusListCalls
            #expect(calls.allSatisfy { $0.method == "GET" && $0.path == "/attestation/status" })
            #expect(calls.allSatisfy { !$0.hasAuthorization })
            #expect(calls[0].tag == nil && calls[0].status == 200)
            #expect(calls[1].tag == #""list-1""# && calls[1].status == 304)
        }

        @Test func `what is no list leaves the list before in use`() throws {
            let stand = try Stand(Self.revoked)
            defer { stand.end() }
            try stand.wait(for: #"google_status_list_entries{source="google"} 1"#)
            for (text, outcome) in [("<html>", "unreadable"), ("{}", "unreadable")] {
                stand.google.serveStatusList(text)
                try stand.wait(for: #"google_status_list_fetches_total{outcome="\#(outcome)"}"#)
            }
            stand.google.playStatusList(.status(503))
            try expectEqual(stand.enrol(stand.makeKey()).reason, "certificate-revoked")
        }

        @Test func `without Google a start uses the copy on disk, and enrols no phone without it`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            try stand.wait(for: #"google_status_list_entries{source="google"} 0"#)
            var key = stand.makeKey()
            try expectEqual(stand.enrol(key).status, 201)
            stand.google.playStatusList(.status(503))
            try stand.restart()
            try stand.wait(for: #"google_status_list_entries{source="copy"} 0"#)
            try expectEqual(stand.enrol(stand.makeKey()).status, 201)
            let copy = stand.scenario.path("portcullis.db.google-status")
            for text in [nil, "garbage"] {
                try stand.restart {
                    try? FileManager.default.removeItem(atPath: copy)
                    try text.map { try stand.scenario.write("portcullis.db.google-status", $0) }
                }
                try stand.wait(for: #"google_status_list_entries{source="release"}"#)
                let refused = try stand.enrol(stand.makeKey())
                #expect(refused.status == 503 && refused.reason == "status-list-unavailable")
                // Enrolled keys pass all the same.
                try expectEqual(stand.send(&key).status, 200)
            }
            stand.google.playStatusList(.proper)
            try stand.restart()
            try stand.wait(for: #"google_status_list_entries{source="google"} 0"#)
            try expectEqual(stand.enrol(stand.makeKey()).status, 201)
        }

        @Test func `a copy that could not be replaced gets no later date, and brings no key back`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            try stand.wait(for: #"google_status_list_fetches_total{outcome="unchanged"}"#)
            var key = stand.makeKey()
            try expectEqual(stand.enrol(key).status, 201)
            // As on a full disk: the newer list can't be written.
            let copy = stand.scenario.path("portcullis.db.google-status")
            #expect(eventually { mkdir(copy + ".new", 0o700) == 0 })
            let before = FileManager.default.contents(atPath: copy)
            #expect(before != nil)
            stand.google.serveStatusList(Self.revoked)
            #expect(try eventually { try stand.send(&key).reason == "key-revoked" })
            rmdir(copy + ".new")
            let count = stand.google.statusListCalls.count
            #expect(
                stand.google.waitForList { calls in
                    calls.dropFirst(count).filter { $0.status == 304 }.count > 1
                }
            )
            expectEqual(FileManager.default.contents(atPath: copy), before)
            stand.google.playStatusList(.status(503))
            try stand.restart()
            try stand.wait(for: #"google_status_list_entries{source="copy"} 0"#)
            try expectEqual(stand.send(&key).reason, "key-revoked")
        }
    }
}
