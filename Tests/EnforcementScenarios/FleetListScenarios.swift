import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Google's list at gateways that share a store, of which one can't fetch it.
    @Suite struct FleetLists {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              counter: { window: 64 }
              accept: [assertion, session]
            """
        private static let signing = SigningForm.lines(.all, headers: [])
        private static let sessions = "/.well-known/app-attest/sessions"
        private static let empty = #"{"entries": {}}"#
        private static let revoked = #"{"entries": {"c0ffee": {"status": "REVOKED"}}}"#

        private let place: Scenario
        private let google: StandInServer
        private let fleet: Fleet
        private let device: SoftwareDevice

        /// Gateway 0 asks for the list each second. Gateway 1 can't, and has that of the release.
        init() throws {
            place = try Scenario()
            google = try StandInServer(folder: place.folder.path)
            google.serveStatusList(Self.empty, fields: [("Cache-Control", "max-age=1")])
            let settings = google.googleSettings(", min_interval: 1s")
            fleet = try ClientSide.$current.withValue(.android) {
                try Fleet(2, rules: Self.rules, more: "google: " + settings)
            }
            var phone = SoftwarePhone()
            phone.serial = 0xC0_FFEE
            device = SoftwareDevice(
                authority: Scenario.authority,
                package: "com.example.shop",
                phone: phone
            )
            try fleet.rewrite(1, "url: \"https://localhost:", "url: \"https://localhost:1/")
            try restart()
        }

        private func end() {
            fleet.end()
            google.stop()
            place.end()
        }

        /// Starts gateway 1 again, and waits until it has compared the keys with its list.
        private func restart() throws {
            try fleet.stop(1)
            try fleet.start(1)
            let isCompared = try eventually {
                try Metrics(fleet.admin(1))["google_status_list_compare_seconds"] > 0
            }
            #expect(isCompared)
        }

        private func send(
            _ key: inout SoftwareKey,
            to number: Int,
            _ target: String = "/v1/orders"
        ) throws -> Answer {
            let gateway = try #require(fleet.gateway(number))
            return try gateway.post(target, by: &key, gateway.client(), signing: Self.signing)
        }

        private func enrolled(at number: Int) throws -> SoftwareKey {
            let key = device.makeKey()
            let gateway = try #require(fleet.gateway(number))
            let answer = try gateway.enrol(key, gateway.client())
            expectEqual(answer.status, 201, "\(answer.text)")
            return key
        }

        private func isRefusedByAll(_ key: inout SoftwareKey) throws -> Bool {
            for number in 0..<2 where try send(&key, to: number).reason != "key-revoked" {
                return false
            }
            return true
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `what one gateway's list revokes is refused by all, whatever lists they have`()
            throws
        {
            defer { end() }
            var key = try enrolled(at: 0)
            for number in 0..<2 { try expectEqual(send(&key, to: number).status, 200) }
            let opened = try send(&key, to: 1, Self.sessions)
            var session = try #require(SoftwareSession(answer: opened.body), "\(opened.text)")
            let request = SoftwareKey.Request(method: "POST", target: "/v1/orders")
            func useSession() throws -> Answer {
                let made = session.proof(of: request, signing: Self.signing)
                let proof = try #require(made)
                let client = try #require(fleet.gateway(1)).client()
                return try client.send(request.method, request.target, proof.fields)
            }
            try expectEqual(useSession().status, 200)

            google.serveStatusList(Self.revoked)
            let clock = ContinuousClock()
            let start = clock.now
            let isRefused = try eventually { try isRefusedByAll(&key) }
            #expect(isRefused)
            try expectEqual(useSession().status, 403)
            let time = clock.now - start
            #expect(time < .seconds(60))
            print("fleet: a listed key was refused by both gateways after \(time)")

            // A phone that enrols where the list is not known.
            var late = try enrolled(at: 1)
            let isLateRefused = try eventually(within: 60) { try isRefusedByAll(&late) }
            #expect(isLateRefused)

            // An older list brings nothing back.
            try restart()
            #expect(try isRefusedByAll(&key))
            #expect(try isRefusedByAll(&late))
            #expect(try Metrics(fleet.admin(1))["google_status_list_entries"] > 100)
            let lifted = "no longer in Google's status list"
            #expect(try !fleet.keys("history").contains(lifted))

            // A newer one does.
            google.serveStatusList(Self.empty)
            for number in 0..<2 {
                let isGood = try eventually { try send(&key, to: number).status == 200 }
                #expect(isGood)
            }
            #expect(try fleet.keys("history").contains(lifted))
        }
    }
}
