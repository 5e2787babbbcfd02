import ConfigurationReading
import Glibc
import KeyStore
import PostgreSQLKeyStore
import SQLiteKeyStore

// Faults that a start finds only when it opens or binds. `check` looks for them and does neither.
extension Preparation {
    /// The start's problems with the store.
    static func storeProblems(
        _ configuration: GatewayConfiguration,
        _ age: StoreAge.Demand
    ) -> [Problem] {
        let keyPath = "store.sqlite"
        let place = configuration.place(of: keyPath)
        if let file = configuration.store.file, configuration.keeping.mustExist,
            StorePreview.birthplace(file) != .taken
        {
            let (found, use) = StoreOpening.missing
            return [Problem(.error, at: place, keyPath, found: "\(file): \(found)", use: use)]
        }
        guard let file = configuration.store.file,
            let problem = StorePreview.problem(of: file, age: age)
        else { return [] }
        let found = "\(problem.path), which \(problem.detail)"
        let use = "another store, or do this: \(problem.hint)"
        return [Problem(.error, at: place, keyPath, found: found, use: use)]
    }

    /// The start's problems with a database that several gateways share. It asks the database, and
    /// changes nothing there.
    ///
    /// Tables that can't be used are an error. A database that can't be reached, is slow, or
    /// accepts no writes, is a warning: a gateway starts nevertheless and waits for it, and `check`
    /// may run where the database can't be reached.
    static func databaseProblems(_ configuration: GatewayConfiguration) -> [Problem] {
        guard case .postgresql(let database) = configuration.store else { return [] }
        let keyPath = "store.postgresql"
        let place = configuration.place(of: keyPath)
        func problem(_ severity: Problem.Severity, _ found: String, next: String?) -> Problem {
            let use = "another database, or do this: \(next ?? "see its log")"
            return Problem(severity, at: place, keyPath, found: found, use: use)
        }
        do throws(JournalError) {
            let found = try DatabaseCheckup(database)
            if let fault = found.tableFault {
                return [problem(.error, fault.detail, next: fault.next)]
            }
            return found.findings.filter { $0.severity == .error }
                .map { problem(.warning, $0.found, next: $0.next) }
        } catch {
            return [problem(error.isPassing ? .warning : .error, error.detail, next: error.next)]
        }
    }

    /// Sockets in the file system that can't be created. Free ports are not checked: a running
    /// gateway has them.
    static func socketProblems(_ configuration: GatewayConfiguration) -> [Problem] {
        let listeners = configuration.listeners.enumerated().map { index, listener in
            ("listen[\(index)].address", listener.address)
        }
        let admin = configuration.admin.map { ("\($0.keyPath).address", $0.address) }
        return (listeners + admin).compactMap { keyPath, address in
            guard case .unix(let path) = address, let found = obstacle(path) else { return nil }
            return Problem(
                .error,
                at: configuration.place(of: keyPath),
                keyPath,
                found: found,
                use: "a path in a folder that exists and that the gateway may write"
            )
        }
    }

    /// Too few descriptors: a warning, since another limit may hold where the gateway is started.
    static func descriptorProblems(_ configuration: GatewayConfiguration) -> [Problem] {
        let shortage = DescriptorLimit.shortage(
            loops: configuration.loops.onThisMachine,
            configuration
        )
        guard let shortage else { return [] }
        let place = configuration.place(of: "event_loops")
        let use = "a higher limit (ulimit -n 1024, LimitNOFILE= in a unit), or fewer event loops"
        return [Problem(.warning, at: place, "event_loops", found: shortage.what, use: use)]
    }

    private static func obstacle(_ path: String) -> String? {
        var status = stat()
        if lstat(path, &status) == 0 {
            return status.st_mode & S_IFMT == S_IFSOCK ? nil : "\(path), which is no socket"
        }
        // The user that starts the gateway binds it, and hands it over.
        guard case .refused(let found) = WriteAccess(toFile: path, as: nil) else { return nil }
        return found
    }
}
