import Foundation
import Glibc
import LoopbackKit
import TestSupport

// What fleets do with their database.
extension DatabaseServer {
    /// A database with the tables and without keys, of which each fleet gets a copy: the program
    /// takes longer to start than to make the tables. Its server has ended.
    private static let withTables: Result<DatabaseServer, any Error> = Result {
        let server = try DatabaseServer()
        atexit { DatabaseServer.removeTables() }
        let scenario = try Scenario()
        defer { scenario.end() }
        try scenario.configure(origin: "127.0.0.1:9", rules: "[]", database: server.address)
        let made = try scenario.portcullis("store", "migrate", scenario.path("portcullis.yaml"))
        guard made.status == 0 else { throw ChildProcess.Failure(description: "tables: \(made)") }
        try server.stop()
        return server
    }

    private static func removeTables() {
        guard case .success(let server) = withTables else { return }
        server.end()
    }

    /// A database with the tables and without keys.
    ///
    /// - network: where it takes connections of TCP, besides its socket.
    convenience init(in network: NetworkNamespace?) throws {
        let tables = try Self.withTables.get().folder
        try self.init(entrance: network?.entrance ?? []) { _, folder in
            "cp -a \(tables)/data \(folder)/data"
        }
    }

    /// Makes a standby of a server.
    ///
    /// - isWaitedFor: whether the server from then on commits only what the standby has, too.
    convenience init(standbyOf primary: DatabaseServer, isWaitedFor: Bool) throws {
        try self.init { programs, folder in
            """
            \(programs)/pg_basebackup --no-sync --host=\(primary.folder) --username=portcullis \
                --pgdata=\(folder)/data --write-recovery-conf --checkpoint=fast
            """
        }
        if isWaitedFor { try primary.set("synchronous_standby_names", "*") }
    }

    /// Changes a setting while it runs.
    func set(_ name: String, _ value: String) throws {
        _ = try query("ALTER SYSTEM SET \(name) = '\(value)'")
        _ = try query("SELECT pg_reload_conf()")
    }

    /// Has every commit wait for a standby that there is not.
    ///
    /// The checkpointer tells the others of the setting, some time after the reload. So commits
    /// are made until one waits.
    func withholdCommits() throws {
        try set("synchronous_standby_names", "absent")
        let message = "SELECT pg_logical_emit_message(true, 'test', 'a commit')"
        let isWaiting = try eventually {
            let commit = Thread.Answer { try self.query(message) }
            var isCancelled = false
            _ = try eventually {
                isCancelled = try cancelCommit()
                return isCancelled || commit.isThere
            }
            return isCancelled
        }
        guard isWaiting else {
            throw ChildProcess.Failure(description: "no commit waits for a standby")
        }
    }

    /// Cancels the wait of a commit for a standby; false where none waits.
    func cancelCommit() throws -> Bool {
        let cancel = """
            SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'
            """
        return try !query(cancel).isEmpty
    }

    /// Waits until all that was committed is on disk, and where a standby follows, there too.
    func settle() throws {
        _ = try query("CHECKPOINT")
        let isBehind = """
            SELECT count(*) FROM pg_stat_replication WHERE replay_lsn < pg_current_wal_lsn()
            """
        guard try eventually({ try query(isBehind) == ["0"] }) else {
            throw ChildProcess.Failure(description: "the standby does not catch up")
        }
    }

    /// Has a standby follow its server no more.
    func unfollow() throws {
        try set("primary_conninfo", "")
        let receivers = "SELECT count(*) FROM pg_stat_wal_receiver"
        guard try eventually({ try query(receivers) == ["0"] }) else {
            throw ChildProcess.Failure(description: "the standby still follows")
        }
    }

    /// Makes a standby the server that takes writes.
    func promote() throws { _ = try query("SELECT pg_promote()") }

    /// Has all statements about a table wait while `body` runs.
    func withhold(_ table: String, _ body: () throws -> Void) throws {
        let lock = "BEGIN; LOCK TABLE \(table) IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)"
        let holder = "FROM pg_stat_activity WHERE query = '\(lock)'"
        let held = Thread.Answer { try self.query(lock) }
        let isHeld = try eventually {
            try query("SELECT count(*) \(holder) AND wait_event = 'PgSleep'") == ["1"]
        }
        guard isHeld else {
            throw ChildProcess.Failure(description: "\(table) is not locked")
        }
        let result = Result { try body() }
        _ = try query("SELECT pg_terminate_backend(pid) \(holder)")
        guard eventually({ held.isThere }) else {
            throw ChildProcess.Failure(description: "\(table) is still locked")
        }
        try result.get()
    }

    /// Stops all its processes, which hold what they have locked.
    func pause() throws { try signalAll(SIGSTOP) }

    func resume() throws { try signalAll(SIGCONT) }

    private func signalAll(_ number: Int32) throws {
        guard let postmaster else { return }
        kill(postmaster, number)
        for child in try Self.children(of: postmaster) { kill(child, number) }
    }

    /// Ends one of the processes that serve connections: the server then ends them all, and
    /// recovers.
    func killOneBackend() throws {
        let text = try query(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                + "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
        )
        if let backend = text.first.flatMap({ Int32($0) }) { kill(backend, SIGKILL) }
    }

    /// Ends every connection in order.
    func endConnections() throws {
        _ = try query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                + "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
    }

    /// The lines that a statement answers, fields divided by `|`.
    func query(_ statement: String) throws -> [Substring] {
        let words = ["-X", "-A", "-t", "-d", address, "-c", statement]
        let answer = try ChildProcess.run("\(Self.requirePrograms())/psql", words)
        guard answer.status == 0 else {
            throw ChildProcess.Failure(description: "psql: \(answer.complained)")
        }
        return answer.printed.split(separator: "\n")
    }

    private static func children(of process: Int32) throws -> [Int32] {
        let path = "/proc/\(process)/task/\(process)/children"
        return try String(contentsOfFile: path, encoding: .utf8).split(separator: " ")
            .compactMap { Int32($0) }
    }
}
