import Expectations
import Foundation
import GRDB
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// A gateway on a store that a released version has left, with the devices that it knew:
    /// Tests/Vectors/store.
    @Suite(.ofApple, .enabled(if: Scenario.loadProgram != nil)) struct ReleasedStores {
        private static let versions = ["1.0.0"]
        private enum Store: String, CaseIterable, Sendable { case sqlite, postgresql }

        private static let apps = """
              - { id: ABCDE12345.com.example.shop, environments: [test], test_root: root.pem }
              - { android: com.example.shop, environments: [test], test_root: root.pem,
                  on_error: forward, signers: ["\(String(repeating: "07", count: 32))"] }
            """
        private static let rules =
            rule("bare", signing: "[method, target]")
            + rule("once", signing: "[method, target, challenge]")

        private static func rule(_ name: String, signing: String) -> String {
            """
            - id: \(name)
              match: { path: /v1/\(name) }
              mode: enforce
              sign: \(signing)
              apps: [ABCDE12345.com.example.shop, com.example.shop]

            """
        }

        /// Puts a store back where this gateway looks for it.
        ///
        /// - Returns: the server of the database; `nil` where it is a file.
        private func restore(
            _ store: Store,
            of folder: URL,
            in scenario: Scenario
        ) throws -> DatabaseServer? {
            let file = folder.appending(path: "\(store).sql")
            switch store {
            case .sqlite:
                for name in ["generation", "rollout"] {
                    try FileManager.default.copyItem(
                        at: folder.appending(path: "sqlite.\(name)"),
                        to: scenario.folder.appending(path: "portcullis.db.\(name)")
                    )
                }
                let text = try String(contentsOf: file, encoding: .utf8)
                let database = try DatabaseQueue(path: scenario.path("portcullis.db"))
                // The text begins and ends a transaction of its own.
                try database.writeWithoutTransaction { try $0.execute(sql: text) }
                try database.close()
                return nil
            case .postgresql:
                let server = try DatabaseServer()
                let words = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.address, "-f"]
                let program = try DatabaseServer.requirePrograms() + "/psql"
                let made = try scenario.run(program, words + [file.path])
                expectEqual(made.status, 0, "\(made)")
                return server
            }
        }

        @Test(arguments: versions, Store.allCases)
        private func `devices go on, what was used or revoked is refused, and the order holds`(
            _ version: String,
            _ store: Store
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let folder = SoftwareVectorFiles.folder.appending(path: "store/\(version)")
            for name in ["phones.json", "root.pem"] {
                let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
                try scenario.write(name, text)
            }
            if store == .postgresql, DatabaseServer.programs == nil { return }
            let server = try restore(store, of: folder, in: scenario)
            defer { server?.end() }
            let origin = try scenario.origin()
            try scenario.configure(
                origin: origin.address,
                apps: Self.apps,
                rules: Self.rules,
                database: server?.address
            )
            let gateway = try scenario.serve()
            let client = gateway.client()
            func get(_ path: String, _ proof: String = "") -> [UInt8] {
                let fields = proof.split(separator: "\n").map { "\($0)\r\n" }.joined()
                return Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)
            }
            // That version has admitted it.
            let file = folder.appending(path: "\(store).proof")
            let used = try get("/v1/bare", String(contentsOf: file, encoding: .utf8))
            try expectEqual(client.send(raw: used).reason, "counter-replayed")
            func sign(_ device: Int) throws -> [UInt8] {
                let program = try #require(Scenario.loadProgram)
                let words = ["sign", "--config", scenario.path("portcullis.yaml"), "--device"]
                let url = "http://127.0.0.1:\(gateway.port)/v1/bare"
                let more = ["\(device)", scenario.path("phones.json"), url]
                let signed = try scenario.run(program, words + more)
                expectEqual(signed.status, 0, "\(signed)")
                return get("/v1/bare", signed.printed)
            }
            // Two iPhones and an Android phone; then the one whose key was revoked.
            for device in [0, 2, 3] {
                let proof = try sign(device)
                let answer = try client.send(raw: proof)
                expectEqual(answer.status, 200, "device \(device): \(answer.text)")
                try expectEqual(client.send(raw: proof).reason, "counter-replayed")
            }
            try expectEqual(client.send(raw: sign(1)).reason, "key-revoked")
            expectEqual(origin.seen.count, 3)
            // The rule enforces, and an operator has ordered that it observes.
            let isObserved = try eventually {
                try client.send(raw: get("/v1/once")).status == 200
            }
            #expect(isObserved)
            try expectEqual(client.send(raw: get("/v1/bare")).status, 401)
            try expectEqual(gateway.stop(), 0)
        }
    }
}
