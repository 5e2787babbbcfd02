import Expectations
import Foundation
import Glibc
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// A fleet's database behind PgBouncer.
    @Suite struct FleetPoolers {
        private enum Mode: String {
            case session
            case transaction
        }

        /// A pooler in front of a database, by a socket of its own.
        private static func start(_ mode: Mode, _ fleet: Fleet) throws -> (ChildProcess, String) {
            let folder = fleet.database.folder + "/\(mode)"
            let settings = """
                [databases]
                postgres = host=\(fleet.database.folder) dbname=postgres user=portcullis
                [pgbouncer]
                listen_port = 6432
                unix_socket_dir = \(folder)
                auth_type = any
                pool_mode = \(mode)
                ignore_startup_parameters = options

                """
            // It refuses to be root, and ends with this process: `cat` then sees the end.
            let script = """
                mkdir -m 777 \(folder) && printf '%s' "$0" > \(folder)/ini
                exec 3<&0
                \(DatabaseServer.asOther) /usr/sbin/pgbouncer \(folder)/ini \\
                    > \(folder)/log 2>&1 3<&- &
                server=$!
                (cat <&3; kill -TERM $server) > /dev/null 2>&1 &
                until test -S \(folder)/.s.PGSQL.6432; do kill -0 $server || exit 1; sleep 0.1; done
                echo ready
                wait $server
                """
            let child = try ChildProcess("/bin/sh", ["-c", script, settings], input: nil)
            try child.wait(for: "PgBouncer") { printed, _ in printed.contains("ready") ? () : nil }
            return (child, "\(folder) port=6432")
        }

        private static let isThere =
            DatabaseServer.programs != nil && access("/usr/sbin/pgbouncer", X_OK) == 0

        @Test(.enabled(if: isThere))
        func `a pooler for sessions serves, and one for transactions is refused by name`() throws {
            let fleet = try Fleet(1, rules: StockRule.list(.bare))
            defer { fleet.end() }
            let direct = try String(
                contentsOfFile: fleet.scenario.path("direct.yaml"),
                encoding: .utf8
            )
            func configure(_ mode: Mode) throws -> ChildProcess {
                let (child, place) = try Self.start(mode, fleet)
                let host = "host=\(fleet.database.folder)"
                #expect(direct.contains(host))
                let pooled = direct.replacing(host, with: "host=\(place)")
                try fleet.scenario.write("\(mode).yaml", pooled)
                return child
            }
            let sessions = try configure(.session)
            let gateway = try fleet.scenario.serve("session.yaml")
            let client = gateway.client()
            var key = Scenario.device.makeKey()
            try expectEqual(gateway.enrol(key, client).status, 201)
            try expectEqual(client.send(raw: key.get("/v1/bare")).status, 200)
            try expectEqual(gateway.stop(), 0)
            sessions.end()

            let transactions = try configure(.transaction)
            defer { transactions.end() }
            let path = fleet.scenario.path("transaction.yaml")
            for command in ["check", "serve"] {
                let said = try fleet.scenario.portcullis(command, path)
                expectEqual(said.status, 1)
                let text = said.printed + said.complained
                #expect(text.contains("session pooling"), "\(command): \(text)")
                #expect(text.contains("pool_mode = session"))
            }
        }
    }
}
