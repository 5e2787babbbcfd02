package import ConfigurationReading
import Glibc
import KeyStore
import PostgreSQLKeyStore
import Rules
package import SQLiteKeyStore

/// A configuration's requirements on this machine: certificates, folders, a user.
///
/// A start, a reload and `check` all make one, so that none of them accepts what another one
/// refuses. It binds and writes nothing.
package struct Preparation: Sendable {
    /// Whether this process has the store's database open.
    enum StoreUse {
        case notYet
        /// The file is not opened: a process that closes any descriptor of a file loses its locks
        /// on it (fcntl(2)), and so SQLite's. The next command that opens the database would then
        /// regard itself as the only user and delete the log that the gateway writes.
        case open
    }

    /// Faults, and settings that are probably not intended. An error refuses the configuration.
    package private(set) var problems: [Problem] = []
    /// The certificates, with problems of their own among those above.
    let certificates: LoadedCertificates
    /// The orders of operators about rollouts. A running gateway has its own.
    private(set) var orders = RolloutOrders()
    /// The same, as the gateway has kept them.
    private(set) var keptOrders = FleetOrders()

    /// Makes all checks.
    private init(_ configuration: GatewayConfiguration, store: StoreUse, tls: TLSSurroundings) {
        certificates = LoadedCertificates(configuration, tls)
        problems = certificates.problems
        let user = userToBecome(configuration)
        examineStore(configuration, use: store, user: user)
        if case .notYet = store {
            let read = RolloutFile.kept(of: configuration)
            keptOrders = read.orders
            orders = read.orders.orders(configuration.fileRules)
            problems += [read.problem].compactMap(\.self) + orders.problems(configuration)
        }
        examineLog(configuration, user)
        examineSpilling(configuration, user)
    }

    var errors: [Problem] { problems.filter { $0.severity == .error } }
    var warnings: [Problem] { problems.filter { $0.severity == .warning } }

    /// Reads a file and does all that a start does, except binding and writing: `check`.
    ///
    /// - age: the start's treatment of an older store.
    /// - asksDatabase: whether a shared database is asked too, also for the orders of its fleet;
    ///   `doctor` says more about it.
    package static func load(
        _ file: String,
        age: StoreAge.Demand = .newest,
        asksDatabase: Bool = false
    ) -> LoadedConfiguration {
        var loaded = readable(file)
        guard let configuration = loaded.configuration else { return loaded }
        let names = ServerRegistry(configuration, Resolver()).problems(configuration)
        var found =
            names + storeProblems(configuration, age) + socketProblems(configuration)
            + descriptorProblems(configuration)
        if asksDatabase, case .postgresql = configuration.store {
            let problems = databaseProblems(configuration)
            found += problems
            if problems.isEmpty {
                let asked = RolloutFile.orders(of: configuration)
                loaded.orders = asked.orders
                let new = [asked.problem].compactMap(\.self) + asked.orders.problems(configuration)
                found += new.filter { !loaded.problems.contains($0) }
            }
        }
        return loaded.adding(found)
    }

    /// The preparation for a start or a reload.
    ///
    /// - Throws: all errors together.
    static func complete(
        _ configuration: GatewayConfiguration,
        store: StoreUse = .notYet,
        tls: TLSSurroundings = TLSSurroundings(),
        file: String
    ) throws(GatewayError) -> Preparation {
        let preparation = Preparation(configuration, store: store, tls: tls)
        guard preparation.errors.isEmpty else { throw GatewayError(preparation.errors, file: file) }
        return preparation
    }

    /// The configuration with the problems of a reload.
    static func readable(_ file: String) -> LoadedConfiguration {
        let loaded = ConfigurationLoader.load(file)
        guard let configuration = loaded.configuration else { return loaded }
        let preparation = Preparation(configuration, store: .notYet, tls: TLSSurroundings())
        var ready = loaded.adding(preparation.problems)
        ready.orders = preparation.orders
        return ready
    }

    private mutating func add(
        _ severity: Problem.Severity,
        configuration: GatewayConfiguration,
        keyPath: String,
        found: String,
        use: String
    ) {
        let place = configuration.place(of: keyPath)
        problems.append(Problem(severity, at: place, keyPath, found: found, use: use))
    }

    // MARK: The process

    /// The user that root becomes before anything is written; `nil` for the current user.
    private mutating func userToBecome(_ configuration: GatewayConfiguration) -> ProcessUser? {
        do throws(GatewayError) {
            return try ProcessUser(configuration.process)
        } catch {
            // Another user than that of `check` may start the gateway.
            let isOther = error.isAboutWhoStarts
            add(
                isOther ? .warning : .error,
                configuration: configuration,
                keyPath: "process",
                found: error.what,
                use: "another user, or do this: \(error.hint)"
            )
            return nil
        }
    }

    // MARK: What will be written

    private mutating func examineStore(
        _ configuration: GatewayConfiguration,
        use: StoreUse,
        user: ProcessUser?
    ) {
        guard let file = configuration.store.file else { return }
        let allowed = """
            an absolute path in a folder that the gateway may write, such as \
            /var/lib/portcullis/portcullis.db; a relative one counts from the configuration's folder
            """
        // Journal, lock and generation are files beside it.
        let access = WriteAccess(toFile: file, makesOthers: true, as: user)
        examine(access, configuration: configuration, keyPath: "store.sqlite", use: allowed)
        if case .notYet = use { problems += Self.noDatabaseProblems(configuration) }
    }

    /// A file at the store's path that is something else.
    static func noDatabaseProblems(_ configuration: GatewayConfiguration) -> [Problem] {
        guard let file = configuration.store.file, isNoDatabase(file) else { return [] }
        let keyPath = "store.sqlite"
        return [
            Problem(
                .error,
                at: configuration.place(of: keyPath),
                keyPath,
                found: "\(file), which is no SQLite database",
                use: "the gateway's own database, or a path where there is no file yet"
            )
        ]
    }

    private mutating func examineLog(_ configuration: GatewayConfiguration, _ user: ProcessUser?) {
        switch configuration.log.access {
        case .on, .off, .syslog(.ip), .syslog(.name): break
        case .file(let file):
            let use = "on, or a file in a folder that exists and that the gateway may write"
            examine(
                WriteAccess(toFile: file, as: user),
                configuration: configuration,
                keyPath: "log",
                use: use
            )
        case .syslog(.unix(let path)):
            var status = stat()
            guard stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFSOCK else { return }
            add(
                .warning,
                configuration: configuration,
                keyPath: "log",
                found: "access to \(path), where no socket is, so that lines are lost",
                use: "the socket of a syslog daemon that runs; or on, a file's path, off"
            )
        }
    }

    private mutating func examineSpilling(
        _ configuration: GatewayConfiguration,
        _ user: ProcessUser?
    ) {
        guard configuration.rules.spills else { return }
        switch WriteAccess(toFolder: configuration.spillFolder, as: user) {
        case .granted: break
        case .refused(let found):
            add(
                .warning,
                configuration: configuration,
                keyPath: "spill_folder",
                found: "\(found), so content too large for memory will be answered 503",
                use: "a folder that the gateway may write"
            )
        }
    }

    private mutating func examine(
        _ access: WriteAccess,
        configuration: GatewayConfiguration,
        keyPath: String,
        use: String
    ) {
        switch access {
        case .granted: break
        case .refused(let found):
            add(.error, configuration: configuration, keyPath: keyPath, found: found, use: use)
        }
    }

    /// Whether the file does not begin like a database (SQLite's file format §1.3). An empty one is
    /// a new database.
    private static func isNoDatabase(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var start = [UInt8](repeating: 0, count: 16)
        let count = start.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count != 0 else { return false }
        return count != start.count || !start.elementsEqual("SQLite format 3\0".utf8)
    }
}
