import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// An iPhone's app and an Android phone's at one gateway, under one rule.
    @Suite struct Phones {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              counter: { window: 64 }
              accept: [assertion, session]
              apps: [\(appID), \(package)]
            """
        private static let signing = SigningForm.lines(.all, headers: [])
        private static let appID = "TEAM123456.com.example.shop"
        private static let package = "com.example.shop"

        private let scenario: Scenario
        private let origin: RecordingOrigin
        private let gateway: GatewayProcess
        private let client: HTTPClient

        private static func device(_ side: ClientSide) -> SoftwareDevice {
            ClientSide.$current.withValue(side) { Scenario.device }
        }

        init() throws {
            scenario = try Scenario()
            origin = try scenario.origin()
            let apps = [ClientSide.http1, .android].map { side in
                ClientSide.$current.withValue(side) { "  - \(Scenario.app)" }
            }
            try scenario.configure(
                origin: origin.address,
                apps: apps.joined(separator: "\n"),
                rules: Self.rules
            )
            gateway = try scenario.serve()
            client = gateway.client()
        }

        private func send(
            _ key: inout SoftwareKey,
            damage: AssertionDamage? = nil,
            _ edit: (inout [(name: String, value: String)]) -> Void = { _ in }
        ) throws -> Answer {
            let request = SoftwareKey.Request(
                method: "POST",
                target: "/v1/orders",
                content: Array(#"{"item":7}"#.utf8),
                challenge: try gateway.challenges("assertion", client)[0]
            )
            var fields = key.proof(of: request, signing: Self.signing, damage: damage).fields
            edit(&fields)
            return try client.send(
                request.method,
                request.target,
                fields,
                content: request.content
            )
        }

        @Test func `both enrol, and the origin gets the requests of both`() throws {
            defer { scenario.end() }
            for (side, app) in [(ClientSide.http1, Self.appID), (.android, Self.package)] {
                var key = Self.device(side).makeKey()
                try expectEqual(send(&key).reason, "key-unknown")
                try expectEqual(gateway.enrol(key, client, context: [1]).status, 201)
                try expectEqual(send(&key).status, 200)
                let seen = try #require(origin.seen.last)
                expectEqual(seen.head.all("App-Attest-App-Id"), [app])
                expectEqual(seen.head.all("App-Attest-Verdict"), ["pass"])
                expectEqual(seen.head.all("App-Attest-Context"), ["AQ=="])
                try expectEqual(send(&key, damage: .counterRepeated).reason, "counter-replayed")
                try expectEqual(send(&key, damage: .otherClientData).reason, "signature-mismatch")
            }
        }

        @Test func `neither sends the other's form`() throws {
            defer { scenario.end() }
            var keys = [Self.device(.http1).makeKey(), Self.device(.android).makeKey()]
            for key in keys { try expectEqual(gateway.enrol(key, client).status, 201) }
            let ids = keys.map(\.keyID.base64)
            for place in 0..<2 {
                let other = ids[1 - place]
                let answer = try send(&keys[place]) { fields in
                    fields = fields.map { name, value in
                        (name, name == "App-Attest-Key-Id" ? other : value)
                    }
                }
                #expect(answer.status == 400 && answer.reason == "assertion-malformed")
            }
            #expect(origin.seen.isEmpty)
        }

        @Test func `commands say whose a key is, and an export is imported`() throws {
            defer { scenario.end() }
            var key = Self.device(.android).makeKey()
            try expectEqual(gateway.enrol(key, client).status, 201)
            try expectEqual(send(&key).status, 200)
            let config = ["--config", scenario.path("portcullis.yaml")]
            // The counter of a request with a challenge is written behind its answer.
            let line = "\(key.keyID.base64)\t\(Self.package)\ttest\tactive\t1\t"
            #expect(
                try eventually {
                    try scenario.portcullis(["keys", "list"] + config).printed.hasPrefix(line)
                }
            )
            let shown = try scenario.portcullis(["keys", "show"] + config + [key.keyID.base64])
            #expect(shown.printed.contains(#""platform": "android""#), "\(shown)")
            let exported = try scenario.portcullis(["keys", "export"] + config).printed
            #expect(exported.contains(#""platform":"android""#), "\(exported)")
            try expectEqual(gateway.stop(), 0)
            try scenario.write("keys.jsonl", exported)
            for name in try FileManager.default.contentsOfDirectory(atPath: scenario.folder.path)
            where name.hasPrefix("portcullis.db") {
                try FileManager.default.removeItem(atPath: scenario.path(name))
            }
            let imported = try scenario.portcullis(
                ["keys", "import"] + config + [scenario.path("keys.jsonl")]
            )
            expectEqual(imported.status, 0, "\(imported)")
            let next = try scenario.serve()
            let client = next.client()
            let answer = try next.post("/v1/orders", by: &key, client, signing: Self.signing)
            expectEqual(answer.status, 200)
        }
    }
}
