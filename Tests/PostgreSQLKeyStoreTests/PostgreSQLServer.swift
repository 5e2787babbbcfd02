import Foundation
import KeyStore
import Synchronization

@testable import PostgreSQLKeyStore

/// A server of PostgreSQL of these tests' own, in a folder of its own, on a Unix socket. It ends
/// with this process, however that ends.
final class PostgreSQLServer: Sendable {
    struct Missing: Error, CustomStringConvertible {
        let description: String
    }

    /// The one server of this process.
    static let shared = Result { try PostgreSQLServer() }

    let folder: String
    private let schemaCount = Atomic(0)
    /// The server ends when this is closed.
    private let leash: Pipe
    private let answers: Pipe
    private let process: Process

    /// Starts a server.
    init() throws {
        let programs = try Self.programs()
        folder = try Self.makeFolder()
        // The server refuses to be root.
        let prefix = getuid() == 0 ? "setpriv --reuid postgres --regid postgres --init-groups" : ""
        let script = """
            set -e
            \(prefix) \(programs)/initdb --no-sync --auth=trust --username=portcullis \\
                --encoding=UTF8 --pgdata=\(folder)/data > \(folder)/log 2>&1
            start() {
                \(prefix) \(programs)/postgres -D \(folder)/data -k \(folder) \\
                    -c listen_addresses= -c fsync=off -c max_connections=200 \\
                    -c deadlock_timeout=100ms \\
                    >> \(folder)/log 2>&1 &
                server=$!
                until \(programs)/pg_isready -q -h \(folder); do
                    kill -0 $server
                    sleep 0.05
                done
                echo ready
            }
            start
            while read -r word; do
                case $word in
                crash) kill -QUIT $server; wait $server || true; echo ready ;;
                start) start ;;
                esac
            done
            kill -INT $server
            wait $server || true
            rm -rf \(folder)
            """
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script]
        leash = Pipe()
        answers = Pipe()
        process.standardInput = leash
        process.standardOutput = answers
        try process.run()
        try awaitReady()
    }

    private func awaitReady() throws {
        let word = answers.fileHandleForReading.readData(ofLength: 6)
        guard word == Data("ready\n".utf8) else {
            let log = try? String(contentsOfFile: folder + "/log", encoding: .utf8)
            throw Missing(description: "PostgreSQL did not start: \(log ?? "no log")")
        }
    }

    /// Ends the server as a crash does: nothing is written any more.
    func crash() throws { try tell("crash") }

    /// Starts it again behind a crash.
    func start() throws { try tell("start") }

    private func tell(_ word: String) throws {
        try leash.fileHandleForWriting.write(contentsOf: Data("\(word)\n".utf8))
        try awaitReady()
    }

    /// Ends the server, and waits for that.
    func stop() {
        try? leash.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    /// Tables of their own in the database: what each lab needs.
    func makeStore() throws -> PostgreSQLSettings {
        let settings = try makeSchema()
        _ = try DatabaseMigration.run(settings)
        return settings
    }

    /// A place for tables in the database, which is empty.
    func makeSchema() throws -> PostgreSQLSettings {
        let number = schemaCount.add(1, ordering: .relaxed).newValue
        let link = DatabaseLink(PostgreSQLSettings(address: address(schema: "public")))
        _ = try link.ask([DatabaseStatement("CREATE SCHEMA lab\(number)")])
        var settings = PostgreSQLSettings(address: address(schema: "lab\(number)"))
        // Too long for a busy machine to reach. Tests of timeouts set their own.
        settings.connectTimeout = .seconds(30)
        settings.statementTimeout = .seconds(30)
        return settings
    }

    func address(schema: String) -> String {
        "host=\(folder) user=portcullis dbname=postgres options='-c search_path=\(schema)'"
    }

    private static func makeFolder() throws -> String {
        let name = "/tmp/portcullis-postgresql-XXXXXX"
        var path = Array(name.utf8CString)
        guard mkdtemp(&path) != nil else { throw Missing(description: "no folder in /tmp") }
        let folder = String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if getuid() == 0, let user = getpwnam("postgres") {
            chown(folder, user.pointee.pw_uid, user.pointee.pw_gid)
        }
        return folder
    }

    /// The folder of the newest version's programs; Debian keeps several side by side.
    private static func programs() throws -> String {
        let all = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: all)) ?? []
        guard let newest = versions.compactMap(Int.init).max() else {
            throw Missing(description: "PostgreSQL is missing: install the package postgresql")
        }
        return "\(all)/\(newest)/bin"
    }
}
