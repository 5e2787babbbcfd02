package import ConfigurationReading
import Glibc
import Rules
package import SQLiteKeyStore
package import TLSSession

/// What a configuration needs of this machine: certificates, folders, a user.
///
/// A start, a reload and `check` all make one, so that none of them takes what another one
/// refuses. Nothing is bound and nothing written here.
package struct Preparation: Sendable {
    /// Whether this process has the store's database open.
    enum StoreUse {
        case notYet
        /// The file is left alone: a process that closes any descriptor of a file loses its locks
        /// on it (fcntl(2)), and so SQLite's. The next command that opens the database would then
        /// take itself for the only user and delete the log that the gateway writes.
        case open
    }

    /// What is wrong or likely not meant. An error refuses the configuration.
    package private(set) var problems: [Problem] = []
    /// The certificate of each listener, in their order; `nil` for a plain one.
    private(set) var certificates: [TLSContext?] = []

    /// A certificate that ends within these seconds is worth a warning: renewal has failed for a
    /// while (ACME clients renew 30 days before the end).
    private static let expiryWarningSeconds: Int64 = 7 * 86_400

    /// Looks at everything.
    ///
    /// - previous: the certificates that are in use, in the order of the listeners. Their clients
    ///   resume their sessions.
    /// - now: seconds since 1970.
    package init(
        _ configuration: GatewayConfiguration,
        resuming previous: [TLSContext?] = [],
        now: Int64 = Int64(time(nil))
    ) {
        self.init(configuration, store: .notYet, resuming: previous, now: now)
    }

    private init(
        _ configuration: GatewayConfiguration,
        store: StoreUse,
        resuming previous: [TLSContext?],
        now: Int64 = Int64(time(nil))
    ) {
        for (index, listener) in configuration.listeners.enumerated() {
            let keyPath = "listen[\(index)].tls"
            let replaced = index < previous.count ? previous[index] : nil
            certificates.append(
                loadCertificate(listener.tls, keyPath, resuming: replaced, configuration, now)
            )
        }
        let user = userToBecome(configuration)
        examineStore(configuration, store, user)
        examineLog(configuration, user)
        examineSpilling(configuration, user)
    }

    var errors: [Problem] { problems.filter { $0.severity == .error } }
    var warnings: [Problem] { problems.filter { $0.severity == .warning } }

    /// Reads a file and does all that a start does, but for binding and writing: `check`.
    ///
    /// - age: what the start would be told to do with a store that is older.
    package static func load(
        _ file: String,
        age: StoreAge.Demand = .newest
    ) -> ConfigurationReading.LoadedConfiguration {
        let loaded = readable(file)
        guard let configuration = loaded.configuration else { return loaded }
        let names = ServerBook(configuration, Resolver()).problems(configuration)
        return loaded.adding(
            names + storeProblems(configuration, age) + socketProblems(configuration)
                + descriptorProblems(configuration)
        )
    }

    /// The same, for a start or a reload.
    ///
    /// - Throws: all errors together.
    static func complete(
        _ configuration: GatewayConfiguration,
        store: StoreUse = .notYet,
        resuming previous: [TLSContext?] = [],
        file: String
    ) throws(GatewayError) -> Preparation {
        let preparation = Preparation(configuration, store: store, resuming: previous)
        guard preparation.errors.isEmpty else { throw GatewayError(preparation.errors, file: file) }
        return preparation
    }

    /// What a reload would refuse if it came now.
    static func readable(_ file: String) -> ConfigurationReading.LoadedConfiguration {
        let loaded = ConfigurationLoader.load(file)
        guard let configuration = loaded.configuration else { return loaded }
        return loaded.adding(Preparation(configuration).problems)
    }

    private mutating func add(
        _ severity: Problem.Severity,
        _ configuration: GatewayConfiguration,
        _ keyPath: String,
        found: String,
        use: String
    ) {
        let place = configuration.place(of: keyPath)
        problems.append(Problem(severity, place, keyPath, found: found, use: use))
    }

    // MARK: Certificates

    private mutating func loadCertificate(
        _ tls: ListenSettings.TLS?,
        _ keyPath: String,
        resuming previous: TLSContext?,
        _ configuration: GatewayConfiguration,
        _ now: Int64
    ) -> TLSContext? {
        guard let tls else { return nil }
        do throws(TLSContextError) {
            let context = try TLSContext(
                serverCertificateChain: tls.certificateFile,
                key: tls.keyFile,
                minimumVersion: tls.minimumVersion == .tls13 ? .tls13 : .tls12,
                resuming: previous
            )
            if let end = context.certificateExpiry, end < now + Self.expiryWarningSeconds {
                let found =
                    end < now
                    ? "a certificate that ended \(Self.text(now - end)) ago, which clients refuse"
                    : "a certificate that ends in \(Self.text(end - now))"
                add(
                    .warning,
                    configuration,
                    "\(keyPath).certificate",
                    found: "\(found) (\(tls.certificateFile))",
                    use: "a renewed one, then reload"
                )
            }
            return context
        } catch {
            let isKey = [.keyUnreadable, .keyEncrypted, .keyMismatch].contains(error.reason)
            let file = isKey ? tls.keyFile : tls.certificateFile
            let detail = error.detail.isEmpty ? "" : " (\(error.detail))"
            add(
                .error,
                configuration,
                "\(keyPath).\(isKey ? "key" : "certificate")",
                found:
                    "\(error.reason.rawValue): \(file)\(detail)",
                use: Self.use(error.reason)
            )
            return nil
        }
    }

    private static func use(_ reason: TLSContextError.Reason) -> String {
        switch reason {
        case .certificateUnreadable:
            "a PEM file with the server's certificate first and the intermediate ones after it"
        case .certificateWeak:
            "an EC key on P-256 or an RSA key of 2048 bits or more, signed with SHA-256"
        case .keyUnreadable: "a PEM file with the private key, readable by the gateway's user"
        case .keyEncrypted: "a key without passphrase (openssl pkey -in KEY -out PLAIN)"
        case .keyMismatch: "the key that the chain's first certificate was made for"
        case .trustUnreadable, .library: "other files; the text is OpenSSL's own"
        }
    }

    private static func text(_ seconds: Int64) -> String {
        seconds >= 86_400 ? "\(seconds / 86_400)d" : "\(seconds / 3600)h"
    }

    // MARK: The process

    /// The user that root will become before anything is written; `nil` for the one that it is.
    private mutating func userToBecome(_ configuration: GatewayConfiguration) -> ProcessUser? {
        do throws(GatewayError) {
            return try ProcessUser(configuration.process)
        } catch {
            // Another user may start the gateway than runs `check`.
            let isOther = error.isAboutWhoStarts
            add(
                isOther ? .warning : .error,
                configuration,
                "process",
                found: error.what,
                use: "another user, or do this: \(error.hint)"
            )
            return nil
        }
    }

    // MARK: What will be written

    private mutating func examineStore(
        _ configuration: GatewayConfiguration,
        _ use: StoreUse,
        _ user: ProcessUser?
    ) {
        guard let file = configuration.storeFile else { return }
        let allowed = """
            an absolute path in a folder that the gateway may write, such as \
            /var/lib/portcullis/portcullis.db; a relative one counts from the configuration's folder
            """
        // Journal, lock and generation are files beside it.
        let access = WriteAccess(toFile: file, makesOthers: true, as: user)
        examine(access, configuration, "store.sqlite", allowed)
        if case .notYet = use, Self.isNoDatabase(file) {
            add(
                .error,
                configuration,
                "store.sqlite",
                found: "\(file), which is no SQLite database",
                use: "the gateway's own database, or a path where there is no file yet"
            )
        }
    }

    private mutating func examineLog(_ configuration: GatewayConfiguration, _ user: ProcessUser?) {
        guard case .file(let file) = configuration.log.access else { return }
        let use = "on, or a file in a folder that exists and that the gateway may write"
        examine(WriteAccess(toFile: file, as: user), configuration, "log", use)
    }

    private mutating func examineSpilling(
        _ configuration: GatewayConfiguration,
        _ user: ProcessUser?
    ) {
        let spills = configuration.rules.rules.contains { rule in
            if case .held(let limit, let memory) = rule.body { memory < limit } else { false }
        }
        guard spills else { return }
        switch WriteAccess(toFolder: configuration.spillFolder, as: user) {
        case .granted: break
        case .refused(let found):
            add(
                .warning,
                configuration,
                "spill_folder",
                found: "\(found), so content too large for memory will be answered 503",
                use: "a folder that the gateway may write"
            )
        }
    }

    private mutating func examine(
        _ access: WriteAccess,
        _ configuration: GatewayConfiguration,
        _ keyPath: String,
        _ use: String
    ) {
        switch access {
        case .granted: break
        case .refused(let found): add(.error, configuration, keyPath, found: found, use: use)
        }
    }

    /// Whether the file begins otherwise than a database does (SQLite's file format §1.3). An
    /// empty one is a new database.
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
