import Foundation
import Glibc
import LoopbackKit
import TestSupport

/// A server of PostgreSQL of one test's own, on a Unix socket. The test ends, stops and starts it.
final class DatabaseServer {
    /// Where its socket is.
    let folder: String
    private let programs: String
    /// Where it takes connections of TCP too.
    private let network: NetworkNamespace?
    private var child: ChildProcess?
    private var postmaster: Int32 = 0

    /// Where the newest version's programs are, since Debian keeps several side by side; `nil`,
    /// and says so, where there are none.
    static let programs: String? = {
        let all = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: all)) ?? []
        guard let newest = versions.compactMap(Int.init).max() else {
            print("no \(all): install it with deploy/install-packages test; a scenario is skipped")
            return nil
        }
        return "\(all)/\(newest)/bin"
    }()

    /// An empty database, which each server gets a copy of. A copy takes a tenth of the time that
    /// PostgreSQL takes to make one.
    private static let template: Result<String, any Error> = Result {
        let folder = try makeFolder()
        atexit { DatabaseServer.removeTemplate() }
        let programs = try requirePrograms()
        try run(
            """
            \(programs)/initdb --no-sync --auth=trust --username=portcullis --encoding=UTF8 \
                --pgdata=\(folder)/data \
                && echo host all all 10.0.0.0/8 trust >> \(folder)/data/pg_hba.conf
            """
        )
        return folder
    }

    private static func removeTemplate() {
        guard case .success(let folder) = template else { return }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Copies an empty database, and starts its server.
    ///
    /// - network: where it takes connections of TCP, besides its socket.
    convenience init(in network: NetworkNamespace? = nil) throws {
        let template = try Self.template.get()
        try self.init(in: network) { _, folder in "cp -a \(template)/data \(folder)/data" }
    }

    /// Makes a standby of a server.
    ///
    /// - isWaitedFor: whether the server from then on commits only what the standby has, too.
    convenience init(standbyOf primary: DatabaseServer, isWaitedFor: Bool) throws {
        try self.init(in: nil) { programs, folder in
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

    /// - command: what makes the data, in a folder.
    private init(
        in network: NetworkNamespace?,
        _ command: (_ programs: String, _ folder: String) -> String
    ) throws {
        self.network = network
        programs = try Self.requirePrograms()
        folder = try Self.makeFolder()
        try Self.run(command(programs, folder))
        try start()
    }

    private static func requirePrograms() throws -> String {
        guard let programs else { throw ChildProcess.Failure(description: "no PostgreSQL") }
        return programs
    }

    private static func makeFolder() throws -> String {
        var path = Array("/tmp/portcullis-fleet-XXXXXX".utf8CString)
        guard mkdtemp(&path) != nil else { throw ChildProcess.Failure(description: "no folder") }
        if getuid() == 0, let user = getpwnam("postgres") {
            chown(path, user.pointee.pw_uid, user.pointee.pw_gid)
            chmod(path, 0o755)
        }
        return String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Runs what makes the data.
    private static func run(_ command: String) throws {
        let made = try ChildProcess.run("/bin/sh", ["-c", "\(asOther) \(command)"])
        guard made.status == 0 else { throw ChildProcess.Failure(description: "data: \(made)") }
    }

    deinit { end() }

    /// The server refuses to be root.
    static let asOther =
        getuid() == 0 ? "setpriv --reuid postgres --regid postgres --init-groups" : ""

    /// The address without what a gateway adds.
    var address: String { address(at: folder) }

    /// The address by another socket.
    func address(at folder: String) -> String {
        "host=\(folder) user=portcullis dbname=postgres"
    }

    /// Starts the server, which goes on from what it has on disk.
    func start() throws {
        // The server ends with this process, however that ends: `cat` then sees the end.
        let inside = network?.entrance.joined(separator: " ") ?? ""
        let addresses = network == nil ? "" : "'*'"
        let script = """
            exec 3<&0
            \(inside) \(Self.asOther) \(programs)/postgres -D \(folder)/data -k \(folder) \\
                -c listen_addresses=\(addresses) -c fsync=off -c max_connections=60 \\
                >> \(folder)/log 2>&1 3<&- &
            server=$!
            (cat <&3; kill -QUIT $server) > /dev/null 2>&1 &
            until \(programs)/pg_isready -q -h \(folder); do kill -0 $server || exit 1; done
            echo "ready $server."
            wait $server
            """
        let child = try ChildProcess("/bin/sh", ["-c", script], input: nil)
        self.child = child
        postmaster = try child.wait(for: "PostgreSQL") { printed, _ -> Int32? in
            guard printed.hasSuffix(".\n") else { return nil }
            return Int32(printed.dropFirst("ready ".count).prefix { $0.isNumber })
        }
    }

    /// Ends it in the middle of everything; the next start recovers from its log.
    func crash() throws {
        kill(postmaster, SIGQUIT)
        child?.endInput()
        try child?.waitForEnd()
        child?.end()
        child = nil
    }

    func end() {
        try? crash()
        try? FileManager.default.removeItem(atPath: folder)
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

    /// Stops all its processes, which hold what they have locked.
    func pause() throws { try signalAll(SIGSTOP) }

    func resume() throws { try signalAll(SIGCONT) }

    private func signalAll(_ number: Int32) throws {
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
        let answer = try ChildProcess.run("\(programs)/psql", words)
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
