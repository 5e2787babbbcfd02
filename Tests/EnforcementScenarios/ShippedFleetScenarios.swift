import AppAttest
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What the texts and files for fleets say, done: the files of `deploy/compose/fleet`, with
    /// addresses of this machine in the place of names, and the roles of the database.
    @Suite(.enabled(if: DatabaseServer.programs != nil && Scenario.tool("haproxy") != nil))
    struct ShippedFleets {
        private static let deploy: String = {
            var path = URL(filePath: #filePath)
            for _ in 0..<3 { path.deleteLastPathComponent() }
            return path.path + "/deploy/"
        }()

        /// What is shipped, with each of these replaced; all must be there.
        private func shipped(_ file: String, _ replaced: [(String, String)]) throws -> String {
            var text = try String(
                contentsOfFile: Self.deploy + "compose/fleet/" + file,
                encoding: .utf8
            )
            for (old, new) in replaced {
                #expect(text.contains(old), "\(file): \(old)")
                text = text.replacing(old, with: new)
            }
            return text
        }

        private func gateway(
            _ name: String,
            _ scenario: Scenario,
            _ origin: RecordingOrigin,
            _ database: DatabaseServer
        ) throws -> GatewayProcess {
            let text = try shipped(
                "portcullis.yaml",
                [
                    ("0.0.0.0:8080", "127.0.0.1:0"), ("172.30.201.0/24", "127.0.0.0/8"),
                    ("/var/lib/portcullis/admin.sock", scenario.path("\(name).sock")),
                    ("0.0.0.0:9901", "127.0.0.1:0"),
                    ("api:8000", "127.0.0.1:\(origin.port)"),
                    (
                        "host=database dbname=portcullis user=portcullis "
                            + "passfile=/run/secrets/pgpass sslmode=disable",
                        database.address
                    ),
                ]
            )
            try scenario.write("\(name).yaml", text)
            let made = try scenario.portcullis("store", "migrate", scenario.path("\(name).yaml"))
            expectEqual(made.status, 0, "\(made)")
            return try scenario.serve("\(name).yaml")
        }

        @Test func `the fleet that is shipped answers, and goes on when a gateway dies`() throws {
            let haproxy = try #require(Scenario.tool("haproxy"))
            let scenario = try Scenario()
            defer { scenario.end() }
            let database = try DatabaseServer()
            defer { database.end() }
            let origin = try scenario.origin()
            // It speaks the PROXY protocol alone.
            let one = try gateway("one", scenario, origin, database)
            let two = try gateway("two", scenario, origin, database)
            let front = scenario.path("front")
            let text = try shipped(
                "haproxy.cfg",
                [
                    ("bind :8080", "bind unix@\(front)"), ("one:8080", "127.0.0.1:\(one.port)"),
                    ("two:8080", "127.0.0.1:\(two.port)"),
                ]
            )
            try scenario.write("haproxy.cfg", text)
            try scenario.startHAProxy(haproxy, at: front)
            let client = HTTPClient(path: front)
            func answers(_ count: Int) throws -> [Int] {
                try (0..<count).map { _ in
                    try client.send(raw: Array("GET /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                        .status
                }
            }
            try expectEqual(answers(20), Array(repeating: 200, count: 20))
            for gateway in [one, two] {
                let count = try Metrics(gateway.adminClient())["verdicts_total"]
                #expect(count > 0, "\(count)")
            }
            try one.crash()
            try expectEqual(answers(20), Array(repeating: 200, count: 20))
            expectEqual(origin.seen.count, 40)
        }

        /// The statements that the text gives an administrator for psql.
        private static func statements() throws -> Substring {
            let text = try String(contentsOfFile: deploy + "docs/fleet.md", encoding: .utf8)
            return try #require(text.firstMatch(of: #/```sql\n(CREATE ROLE[^`]+)```/#)?.output.1)
        }

        @Test func `a role with the rights of the text serves and can't change tables`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            // As Debian makes one: its administrator is another role than the text's.
            let database = try DatabaseServer { programs, folder in
                "\(programs)/initdb --no-sync --auth=trust --username=postgres "
                    + "--pgdata=\(folder)/data"
            }
            defer { database.end() }
            func address(_ role: String, _ name: String) -> String {
                "host=\(database.folder) user=\(role) dbname=\(name)"
            }
            try scenario.write("roles.sql", String(Self.statements()))
            func psql(_ address: String, _ words: String...) throws -> ChildProcess.Outcome {
                let program = try "\(DatabaseServer.requirePrograms())/psql"
                let options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", address]
                return try ChildProcess.run(program, options + words)
            }
            let roles = try psql(address("postgres", "postgres"), "-f", scenario.path("roles.sql"))
            expectEqual(roles.status, 0, "\(roles)")
            let origin = try scenario.origin()
            func configure(_ name: String, _ address: String) throws {
                try scenario.configure(
                    name,
                    origin: "127.0.0.1:\(origin.port)",
                    rules: StockRule.list(.signed, .bare),
                    database: address
                )
            }
            try configure("owner.yaml", address("portcullis", "portcullis"))
            let made = try scenario.portcullis("store", "migrate", scenario.path("owner.yaml"))
            expectEqual(made.status, 0, "\(made)")
            let own = address("portcullis_gateway", "portcullis")
            try configure("portcullis.yaml", own)
            // What a device, an app and an operator do.
            var key = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(gateway.enrol(Scenario.device.makeKey(), client).status, 201)
            let challenge = try gateway.challenges("assertion", client)[0]
            try expectEqual(
                client.send(raw: key.get("/v1/signed", challenge: challenge)).status,
                200
            )
            try expectEqual(client.send(raw: key.get("/v1/bare")).status, 200)
            for command in ["revoke", "restore", "delete"] {
                let words = ["keys", command, "--config", scenario.path("portcullis.yaml")]
                let done = try scenario.portcullis(words + [key.keyID.base64])
                expectEqual(done.status, 0, "\(done)")
            }
            let dropped = try psql(own, "-c", "DROP TABLE keys")
            #expect(dropped.complained.contains("must be owner of table keys"), "\(dropped)")
        }
    }
}
