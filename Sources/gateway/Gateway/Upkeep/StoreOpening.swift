package import ConfigurationReading
import Encodings
import Glibc
package import KeyStore
import Logging
import PostgreSQLKeyStore
import SQLiteKeyStore
import Tokens

/// Opens the store that a configuration names.
enum StoreOpening {
    /// - Returns: the keys, and whether a new database was created.
    /// - Throws: the fault of the file, with the next step.
    static func table(
        _ configuration: GatewayConfiguration,
        _ surroundings: GatewaySurroundings,
        log: Logger
    ) throws(GatewayError) -> (KeyTable, isNew: Bool) {
        let place = try birthplace(configuration, surroundings.predecessor)
        let journal: any KeyJournal
        let ahead = try readAhead(configuration, surroundings.predecessor)
        // From here on the predecessor and its clients wait, and it decides nothing. What may take
        // long is done before, such as looking up names.
        let lease = try surroundings.predecessor?.takeState(
            isLent: configuration.store.file != nil
        ).lease
        func open(_ file: String) -> Result<any KeyJournal, StoreProblem> {
            guard let lease else { return surroundings.openJournal(file) }
            return Result { () throws(StoreProblem) in
                try SQLiteKeyJournal(path: file, lease: lease, ahead: ahead?.reader)
            }
        }
        do throws(StoreProblem) {
            switch configuration.store {
            // Without a store nothing is verified, so there is nothing to keep.
            case .none: journal = MemoryJournal()
            case .sqlite(let file):
                journal = try withRoom(log) { () throws(StoreProblem) in try open(file).get() }
            case .postgresql(let database):
                journal = try Self.open(database, canWait: surroundings.predecessor == nil)
            }
        } catch {
            throw unusable(error)
        }
        let table = try attempt(configuration) { () throws(JournalError) in
            try KeyTable(
                journal: journal,
                from: ahead.map { .ahead($0.keys) } ?? .numbers(AppNumbers()),
                // Only a database can be away. A process that takes over leaves the clients to its
                // predecessor instead.
                canWait: surroundings.predecessor == nil && journal.decides == .atCommit
            )
        }
        report(place, configuration: configuration, log: log)
        return (table, place != .taken)
    }

    /// The time that a start waits for room on the store's disk.
    static let roomWait: Duration = .seconds(30)

    /// Opens the store. If its disk is full, it retries every second, so that an operator who makes
    /// room need not restart the gateway.
    ///
    /// - Throws: the fault; or that the disk is still full after ``roomWait``.
    private static func withRoom(
        _ log: Logger,
        open: () throws(StoreProblem) -> any KeyJournal
    ) throws(StoreProblem) -> any KeyJournal {
        let deadline = ContinuousClock.now + roomWait
        var isTold = false
        while true {
            do throws(StoreProblem) {
                return try open()
            } catch {
                guard error.reason == .full, ContinuousClock.now < deadline else { throw error }
                if !isTold {
                    log.error(
                        """
                        the store \(error.path): \(error.detail); the start waits up to \
                        \(roomWait.components.seconds) s for room; next: \(error.hint)
                        """
                    )
                }
                isTold = true
                // No event reports room. Nothing is served yet that this could delay.
                poll(nil, 0, 1_000)
            }
        }
    }

    /// What a start would find in the store's place.
    ///
    /// - Throws: where a database is required and missing.
    static func birthplace(
        _ configuration: GatewayConfiguration,
        _ predecessor: Predecessor?
    ) throws(GatewayError) -> StorePreview.Birthplace {
        guard let file = configuration.store.file, predecessor == nil else { return .taken }
        let place = StorePreview.birthplace(file)
        if place != .taken, configuration.keeping.mustExist {
            throw GatewayError("the store \(file): \(missing.found)", hint: missing.use)
        }
        return place
    }

    /// Reports that there was no database, and one was created.
    private static func report(
        _ birthplace: StorePreview.Birthplace,
        configuration: GatewayConfiguration,
        log: Logger
    ) {
        let path = configuration.store.name
        switch birthplace {
        case .taken: break
        case .empty:
            log.notice(
                """
                the store \(path): there was none, and a new one without keys is made; from now \
                on store.must_exist: true refuses a start where it is missing, as when its disk \
                is not mounted
                """
            )
        case .left(let file):
            log.warning(
                """
                the store \(path): a new one without keys is made, although \(file) is left of \
                one that was here; next: if it is lost, restore a backup (portcullis store \
                restore); store.must_exist: true refuses such a start
                """
            )
        }
    }

    /// The message where `store.must_exist` finds no database.
    static let missing = (
        found: "there is no database, and store.must_exist is true",
        use: """
        Mount the disk that has it, or restore a backup (portcullis store restore); for the \
        first start: must_exist: false.
        """
    )

    private static func open(
        _ database: PostgreSQLSettings,
        canWait: Bool
    ) throws(StoreProblem) -> any KeyJournal {
        do throws(JournalError) {
            return try PostgreSQLKeyJournal(database, canWait: canWait)
        } catch {
            throw StoreProblem(error, database.address)
        }
    }

    private static func unusable(_ error: StoreProblem) -> GatewayError {
        guard error.reason == .locked, let holder = PortHolder.predecessor() else {
            return GatewayError("the store \(error.path): \(error.detail)", hint: error.hint)
        }
        return GatewayError(
            "the store \(error.path): is used by \(holder.text), a gateway of this configuration",
            hint: holder.advice
        )
    }

    /// Reads the keys while the predecessor still serves; `nil` without one, and for a store that
    /// only its next writer can read.
    private static func readAhead(
        _ configuration: GatewayConfiguration,
        _ predecessor: Predecessor?
    ) throws(GatewayError) -> (reader: SQLiteKeyReader, keys: KeysAhead)? {
        guard let predecessor else { return nil }
        try predecessor.check(configuration)
        guard let file = configuration.store.file else { return nil }
        let reader: SQLiteKeyReader?
        do throws(StoreProblem) {
            reader = try SQLiteKeyReader(ahead: file)
        } catch {
            throw unusable(error)
        }
        guard let reader else { return nil }
        let keys = try attempt(configuration) { () throws(JournalError) in try KeysAhead(reader) }
        return (reader, keys)
    }

    /// The issuer of challenges; those for enrolment use the store's secret.
    static func issuer(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable,
        from predecessor: Predecessor?
    ) throws(GatewayError) -> ChallengeIssuer {
        let settings = configuration.challenges
        let lifetimes = ChallengeIssuer.Lifetimes(
            enrolment: settings.enrolmentLifetime.components.seconds,
            assertion: settings.assertionLifetime.components.seconds
        )
        let shared = try attempt(configuration) { () throws(JournalError) -> [SharedSecret]? in
            // The store can't be reached, and so its secrets can't be read. Until then this process
            // issues challenges that only it accepts. They are not good afterwards: clients ask for
            // new ones.
            if keys.readFault != nil { return [.placeholder()] }
            do throws(JournalError) {
                return try keys.sharedSecrets(now: Int64(time(nil)), lifetime: settings.lifetimeMax)
            } catch {
                guard predecessor == nil, error.isPassing else { throw error }
                return [.placeholder()]
            }
        }
        // The store knows what the predecessor has spent.
        if let shared {
            return ChallengeIssuer(
                lifetimes: lifetimes,
                capacity: settings.capacity,
                secrets: ChallengeIssuer.Secrets(shared: shared)
            )
        }
        let secret = try attempt(configuration) { () throws(JournalError) in
            try keys.enrolmentSecret()
        }
        guard let state = predecessor?.state?.handed.challenges else {
            return ChallengeIssuer(
                lifetimes: lifetimes,
                capacity: settings.capacity,
                secrets: ChallengeIssuer.Secrets(enrolment: secret)
            )
        }
        do throws(ByteReader.Fault) {
            return try ChallengeIssuer(
                lifetimes: lifetimes,
                capacity: settings.capacity,
                enrolmentSecret: secret,
                goingOnFrom: state
            )
        } catch {
            throw Predecessor.garbled
        }
    }

    private static func attempt<Value>(
        _ configuration: GatewayConfiguration,
        _ body: () throws(JournalError) -> Value
    ) throws(GatewayError) -> Value {
        do throws(JournalError) {
            return try body()
        } catch {
            let problem = StoreProblem(error, configuration.store.name)
            throw GatewayError("the store \(problem.path): \(error)", hint: problem.hint)
        }
    }
}

extension StorePlace {
    /// The store for commands that read and change it.
    ///
    /// - creates: whether to create a missing database file.
    /// - Returns: `nil` without a store.
    package func archive(creates: Bool = false) throws(StoreProblem) -> (any KeyArchive)? {
        switch self {
        case .none: nil
        case .sqlite(let file): try KeyAdministration(path: file, creates: creates)
        case .postgresql(let database): try PostgreSQLKeyArchive(database)
        }
    }

    /// The store for commands that only read it.
    package func readableArchive() throws(StoreProblem) -> (any KeyArchive)? {
        guard case .sqlite(let file) = self else { return try archive() }
        return try KeyAdministration(reading: file)
    }
}
