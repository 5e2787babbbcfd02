import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import Parties
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// What else a process remembers, over an upgrade: tokens of devices, and sessions of TLS.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct UpgradedMemories {
        private static let rules = """
            - id: kind
              match: { path: /v1/kind }
              mode: enforce
              sign: [method, target, body]
              device: { refuse_if: { bit0: true }, timeout: 8s }
            """

        /// A gateway that asks a stand-in for Apple.
        private func stand(_ apple: StandInServer, _ folder: Scenario) throws -> UpgradeStand {
            let team = StandInTeam(teamID: String(Scenario.appID.prefix { $0 != "." }))
            apple.add(team)
            let file = folder.path("\(team.keyID).p8")
            try folder.write("\(team.keyID).p8", team.p8)
            chmod(file, 0o600)
            let key = "{ team: \(team.teamID), key_id: \(team.keyID), file: \"\(file)\" }"
            return try UpgradeStand(
                rules: Self.rules,
                more: """
                    timeouts: { drain: 10m }
                    apple:
                      keys: [\(key)]
                      hosts: { \(apple.hostSettings) }
                      roots: "\(apple.rootFile)"
                    """,
                keys: 6
            )
        }

        private func request(_ key: inout SoftwareKey, _ token: String) -> [UInt8] {
            let request = SoftwareKey.Request(method: "GET", target: "/v1/kind")
            let proof = key.proof(of: request, signing: DeviceStand.parts)
            let fields = proof.fields + [("App-Attest-Device-Token", token)]
            return Array((HTTPClient.head("GET", request.target, fields) + "\r\n").utf8)
        }

        @Test func `a device's token is good once, at whichever process`() throws {
            let folder = try Scenario()
            defer { folder.end() }
            let apple = try StandInServer(folder: folder.folder.path)
            defer { apple.stop() }
            let stand = try stand(apple, folder)
            defer { stand.end() }
            let tokens = (0..<5).map { _ in DeviceStand.token() }
            func new(_ key: Int, _ token: String) throws -> Answer {
                let raw = request(&stand.keys[key], token)
                return try Wire(port: stand.gateway.port).ask(raw)
            }
            try expectEqual(new(0, tokens[0]).status, 200)
            let kept = try (0..<6).map { _ in try stand.connection() }
            // Apple is asked about it while the processes change.
            apple.next(.queryBits, .slow(milliseconds: 1_500))
            try kept[0].send(request(&stand.keys[1], tokens[1]))
            #expect(apple.wait { $0.of(.queryBits).count == 2 })
            try stand.upgrade()
            try expectEqual(new(0, tokens[1]).reason, "device-token-used")
            try expectEqual(kept[0].readFinalResponse().status, 200)
            // At the old one, and then at both.
            try expectEqual(kept[1].ask(request(&stand.keys[2], tokens[2])).status, 200)
            try expectEqual(new(0, tokens[3]).status, 200)
            for (index, token) in tokens[0...3].enumerated() {
                try expectEqual(new(3, token).reason, "device-token-used", "new, \(index)")
                let old = try kept[index + 2].ask(request(&stand.keys[2], token))
                expectEqual(old.reason, "device-token-used", "old, \(index)")
            }
            try expectEqual(new(4, tokens[4]).status, 200)
            try stand.upgrade()
            for token in tokens { try expectEqual(new(5, token).reason, "device-token-used") }
            expectEqual(apple.calls.of(.queryBits).count, 5)
        }

        private func openssl(_ arguments: [String]) throws -> String {
            let outcome = try ChildProcess.run(
                try #require(ChildProcess.tool("openssl")),
                arguments
            )
            return outcome.printed
        }

        /// A certificate that is its own authority.
        private func makeCertificate(in folder: Scenario) throws -> String {
            let (chain, key) = (folder.path("own.pem"), folder.path("own.key"))
            _ = try openssl([
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "20", "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", key, "-out", chain,
            ])
            let files = "certificate: \"\(chain)\", key: \"\(key)\""
            return "{ \(files) }"
        }

        @Test(.enabled(if: ChildProcess.tool("openssl") != nil))
        func `a client without the certificate that is required leaves a message`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            _ = try makeCertificate(in: scenario)
            let files = "certificate: own.pem, key: own.key"
            let tls = "{ \(files), client: { ca: own.pem, require: required } }"
            try scenario.configure(
                origin: "127.0.0.1:9",
                rules: "- { id: r, match: { path: /r }, mode: deny }",
                listeners: "  - { address: 127.0.0.1:0, tls: \(tls) }"
            )
            let gateway = try scenario.serve()
            let address = "127.0.0.1:\(gateway.clientPort)"
            for _ in 0..<3 { _ = try openssl(["s_client", "-connect", address]) }
            #expect(eventually { gateway.child.complained.contains("certificate-missing") })
            // The others count with the next message, which is not before ten seconds.
            #expect((1...2).contains(try gateway.complaints(of: "refused in the TLS handshake")))
            try expectEqual(gateway.stop(), 0)
        }

        @Test(.enabled(if: ChildProcess.tool("openssl") != nil))
        func `clients resume their TLS sessions at the next process`() throws {
            let folder = try Scenario()
            defer { folder.end() }
            let tls = try makeCertificate(in: folder)
            let stand = try UpgradeStand(listeners: "  - { address: 127.0.0.1:0, tls: \(tls) }")
            defer { stand.end() }
            let address = "127.0.0.1:\(stand.gateway.clientPort)"
            func connect(_ option: String, _ file: String) throws -> String {
                try openssl(["s_client", "-connect", address, "-tls1_2", option, file])
            }
            let session = folder.path("session.pem")
            #expect(try connect("-sess_out", session).contains("New, TLSv1"))
            for _ in 0..<2 {
                try stand.upgrade()
                #expect(try connect("-sess_in", session).contains("Reused, TLSv1"))
            }
        }
    }
}
