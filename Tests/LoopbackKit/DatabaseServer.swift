import Foundation
import Glibc
import Synchronization

/// A server of PostgreSQL, on a Unix socket. The tests end, stop and start it, and it ends with
/// their process, however that ends.
package final class DatabaseServer: Sendable {
    /// Where its socket is.
    package let folder: String
    private let programs: String
    /// What its command begins with, which leads to the network where it takes connections of TCP
    /// too; empty for none.
    private let entrance: [String]
    private let running = Mutex<(child: ChildProcess, postmaster: Int32)?>(nil)

    /// The process that ends all the others.
    package var postmaster: Int32? { running.withLock { $0?.postmaster } }

    /// Where the newest version's programs are, since Debian keeps several side by side; `nil`,
    /// and says so, where there are none.
    package static let programs: String? = {
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
    ///
    /// Without the databases that new ones are made from, and with small segments of the log: a
    /// third of the files, half of the bytes. ext4 is slow to make files where as many were removed
    /// a moment ago, as the server before this one's were.
    private static let template: Result<String, any Error> = Result {
        let folder = try makeFolder()
        atexit { DatabaseServer.removeTemplate() }
        let programs = try requirePrograms()
        try run(
            """
            \(programs)/initdb --no-sync --auth=trust --username=portcullis --encoding=UTF8 \
                --wal-segsize=1 --pgdata=\(folder)/data \
                && printf '%s\\n' 'UPDATE pg_database SET datistemplate = false' \
                    'DROP DATABASE template0' 'DROP DATABASE template1' \
                | \(asOther) \(programs)/postgres --single -F -D \(folder)/data postgres \
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
    package convenience init(entrance: [String] = []) throws {
        let template = try Self.template.get()
        try self.init(entrance: entrance) { _, folder in
            "cp -a \(template)/data \(folder)/data"
        }
    }

    /// - command: what makes the data, in a folder.
    package init(
        entrance: [String] = [],
        _ command: (_ programs: String, _ folder: String) -> String
    ) throws {
        self.entrance = entrance
        programs = try Self.requirePrograms()
        folder = try Self.makeFolder()
        try Self.run(command(programs, folder))
        try start()
    }

    package static func requirePrograms() throws -> String {
        guard let programs else { throw ChildProcess.Failure(description: "no PostgreSQL") }
        return programs
    }

    private static func makeFolder() throws -> String {
        var path = Array("/tmp/portcullis-postgresql-XXXXXX".utf8CString)
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
    package static let asOther =
        getuid() == 0 ? "setpriv --reuid postgres --regid postgres --init-groups" : ""

    /// The address without what a gateway adds.
    package var address: String { address(at: folder) }

    /// The address by another socket.
    package func address(at folder: String) -> String {
        "host=\(folder) user=portcullis dbname=postgres"
    }

    /// Starts the server, which goes on from what it has on disk.
    package func start() throws {
        // The server ends with this process, however that ends: `cat` then sees the end.
        let inside = entrance.joined(separator: " ")
        let addresses = entrance.isEmpty ? "" : "'*'"
        let script = """
            exec 3<&0
            \(inside) \(Self.asOther) \(programs)/postgres -D \(folder)/data -k \(folder) \\
                -c listen_addresses=\(addresses) -c fsync=off -c max_connections=200 \\
                -c deadlock_timeout=100ms \\
                >> \(folder)/log 2>&1 3<&- &
            server=$!
            (cat <&3; kill -QUIT $server) > /dev/null 2>&1 &
            until \(programs)/pg_isready -q -h \(folder); do
                kill -0 $server || exit 1
                sleep 0.05
            done
            echo "ready $server."
            wait $server
            """
        let child = try ChildProcess("/bin/sh", ["-c", script], input: nil)
        let postmaster = try child.wait(for: "PostgreSQL") { printed, _ -> Int32? in
            guard printed.hasSuffix(".\n") else { return nil }
            return Int32(printed.dropFirst("ready ".count).prefix { $0.isNumber })
        }
        running.withLock { $0 = (child, postmaster) }
    }

    /// Ends it in the middle of everything; the next start recovers from its log.
    package func crash() throws { try end(by: SIGQUIT) }

    /// Ends it in order; the next start has nothing to recover.
    package func stop() throws { try end(by: SIGINT) }

    private func end(by signal: Int32) throws {
        let taken = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let (child, postmaster) = taken else { return }
        kill(postmaster, signal)
        // The end of its input is a crash, too.
        if signal == SIGQUIT { child.endInput() }
        try child.waitForEnd()
        child.end()
    }

    package func end() {
        try? crash()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
