internal import Cryptography
internal import DeviceKey
internal import Foundation
package import KeyStore
internal import Synchronization
package import Tokens

/// A gateway's journal in PostgreSQL. Other gateways use it too, so the database decides each use.
package final class PostgreSQLKeyJournal: KeyJournal {
    /// Rows of one batch of `load` and `changes`.
    private static let batchCount: Int64 = 4_096

    private let settings: PostgreSQLSettings
    private let writer: DatabaseLink
    private let reader: DatabaseLink
    private let apps = Mutex(AppNumbers())
    private let follower: ChangeFollower
    private let pruner: Mutex<SpentChallengePruner>
    private let receipts: PostgreSQLReceiptStore
    /// Whether the tables were checked: at the start, or when they are first read.
    private let isChecked = Atomic(false)
    private let lost = Mutex(LostRevisions())
    /// The secrets of marks, as read last; `nil` before that, and where they may lack one.
    private let secrets = Mutex<ErasureSecrets?>(nil)

    /// Connects, and checks the tables.
    ///
    /// - canWait: whether the database may be unreachable now: the tables are then checked when
    ///   they are loaded.
    /// - clock: the second of Unix time, for expiry.
    /// - Throws: when no connection can be made, or when the tables are missing, or this version
    ///   can't use them.
    package init(
        _ settings: PostgreSQLSettings,
        canWait: Bool = false,
        clock: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    ) throws(JournalError) {
        self.settings = settings
        pruner = Mutex(SpentChallengePruner(clock: clock))
        writer = DatabaseLink(settings)
        reader = DatabaseLink(settings)
        follower = ChangeFollower(settings)
        receipts = PostgreSQLReceiptStore(settings)
        do throws(JournalError) {
            try check()
        } catch {
            guard canWait, error.isPassing else { throw error }
        }
    }

    private func check() throws(JournalError) {
        guard !isChecked.load(ordering: .acquiring) else { return }
        let version = try reader.run { [settings] (link) throws(DatabaseFault) in
            try link.checkSession(settings)
            return try DatabaseTables.version(link)
        }
        try DatabaseTables.check(version)
        isChecked.store(true, ordering: .releasing)
    }

    package var decides: DecisionMoment { .atCommit }
    package var keysMax: Int? { settings.keysCached }
    package var knowledgeLifetime: Duration? { settings.revokedWithin }
    package var answerTime: Duration? { settings.statementTimeout }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        self.apps.withLock { $0 = apps }
        try check()
        // The revision is read first: a change meanwhile is read twice.
        let revision = try self.revision()
        let made = reader.tally.figures(of: .reader).made
        lost.withLock { $0.loaded(revision, connections: made) }
        // Other keys are looked up when requested: the database may have more than fit here.
        try fetch("k.deleted_at IS NULL", [], most: settings.keysCached, into: body)
        return revision
    }

    package func enrolmentSecret() throws(JournalError) -> [UInt8]? {
        let rows = try writer.ask([
            DatabaseStatement(
                """
                INSERT INTO secrets (name, secret) VALUES ('enrolment', $1)
                ON CONFLICT (name) DO NOTHING
                """,
                [.bytes(RandomBytes.make(count: 32))]
            ),
            DatabaseStatement("SELECT secret FROM secrets WHERE name = 'enrolment'"),
        ])
        guard let secret = rows.last?.first?.bytes(0) else {
            throw JournalError.damaged("there is no secret of the enrolment challenges")
        }
        return secret
    }

    package func sharedSecrets(
        now: Int64,
        lifetime: Int64
    ) throws(JournalError) -> [SharedSecret]? {
        guard let rows = try reader.ask(SharedSecretRows.statements(now: now)).last else {
            throw JournalError.damaged("a statement without an answer")
        }
        return try SharedSecretRows.secrets(rows, now: now, lifetime: lifetime)
    }

    package func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        let reached = try self.revision()
        let made = reader.tally.figures(of: .reader).made
        let (start, goesOn) = lost.withLock { lost in
            (
                lost.start(after: revision, reached, connections: made),
                lost.goesOn(from: revision, at: reached)
            )
        }
        guard goesOn else {
            throw JournalError(
                .replaced,
                "the database was put back to an older state",
                next: "see in `portcullis keys history` which commands it has lost, and give them "
                    + "again; if this lasts, restart the gateways one after the other"
            )
        }
        guard reached > start else { return reached }
        // The marks of another store may have come.
        secrets.withLock { $0 = nil }
        try fetch("k.revision > $3", [.number(start.number)], most: .max, into: body)
        lost.withLock { $0.read() }
        return reached
    }

    /// The secrets of marks.
    private func knownSecrets() throws(JournalError) -> ErasureSecrets {
        if let known = secrets.withLock(\.self) { return known }
        let found = try DatabaseSession(link: writer).secrets()
        secrets.withLock { $0 = found }
        return found
    }

    private func revision() throws(JournalError) -> JournalRevision {
        let rows = try reader.ask([DatabaseStatement("SELECT revision FROM state")])
        guard let found = rows.first?.first else {
            throw JournalError.damaged("the table of the state is empty")
        }
        return JournalRevision(try found.present(0))
    }

    /// Reads keys page by page, in the order of their rows.
    private func fetch(
        _ condition: String,
        _ values: [StatementValue],
        most: Int,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) {
        let apps = apps.withLock { $0 }
        let sql = KeyColumns.select + " WHERE k.id > $1 AND \(condition) ORDER BY k.id LIMIT $2"
        var last: Int64 = 0
        var count = 0
        while count < most {
            let page = DatabaseStatement(sql, [.number(last), .number(Self.batchCount)] + values)
            guard let rows = try reader.ask([page]).first, rows.count > 0 else { return }
            let keys = try rows.map { (row) throws(JournalError) in
                try row.keyRow(apps: apps)
            }
            body(keys)
            last = keys.last?.row ?? last
            count += keys.count
            if rows.count < Self.batchCount { return }
        }
    }

    package func receiptStore() -> (any ReceiptStore)? { receipts }

    package func follow(_ body: @escaping @Sendable () -> JournalError?) { follower.start(body) }

    package func hearOrders(_ body: @escaping @Sendable () -> Void) { follower.hear(body) }

    // MARK: Writing

    package func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        var statements: [DatabaseStatement] = []
        if !batch.changes.isEmpty { statements.append(CounterColumns.statement(batch.changes)) }
        statements += batch.receipts.map(DatabaseStatement.renewal)
        let rounds = UseStatement.rounds(batch.uses)
        let firstRound = statements.count
        statements += rounds.map { UseStatement.statement($0.map { batch.uses[$0] }) }
        let lookUp = statements.count
        if !batch.lookUps.isEmpty {
            statements.append(
                DatabaseStatement(
                    KeyColumns.select + " WHERE k.key_id = ANY ($1::bytea[])",
                    [.manyBytes(Array(Set(batch.lookUps)).map(\.bytes))]
                )
            )
        }
        let spending = statements.count
        if !batch.tokens.isEmpty { statements.append(TokenStatement.statement(batch.tokens)) }
        let firstEnrolment = statements.count
        let secrets = batch.enrolments.isEmpty ? ErasureSecrets([]) : try knownSecrets()
        for (place, record) in batch.enrolments.enumerated() {
            statements += DatabaseStatement.insert(
                record,
                secrets,
                spending: batch.challenge(at: place)
            )
            statements.append(.enrolled(record.keyID, secrets))
        }
        // A gateway that has just learned that there is no such key asks again.
        if !batch.enrolments.isEmpty { statements += DatabaseSession.notification }
        let rows = try writer.ask(statements)
        var answer = CommitAnswer()
        answer.uses = [UseAnswer](repeating: .used, count: batch.uses.count)
        for (index, round) in rounds.enumerated() {
            let found = try UseStatement.answers(rows[firstRound + index], count: round.count)
            for (place, use) in zip(round, found) { answer.uses[place] = use }
        }
        if !batch.lookUps.isEmpty {
            let apps = apps.withLock { $0 }
            answer.found = try rows[lookUp].map { (row) throws(JournalError) in
                try row.keyRow(apps: apps)
            }
        }
        if !batch.tokens.isEmpty {
            answer.tokens = try TokenStatement.answers(rows[spending], batch.tokens)
        }
        answer.enrolments = try enrolled(rows[firstEnrolment...], batch)
        return answer
    }

    /// - rows: three answers for each enrolment.
    private func enrolled(
        _ rows: ArraySlice<DatabaseRows>,
        _ batch: JournalBatch
    ) throws(JournalError) -> [EnrolledRow?] {
        let apps = apps.withLock { $0 }
        var enrolled: [EnrolledRow?] = []
        var next = rows.startIndex
        while next + 2 < rows.endIndex {
            let (new, found) = (rows[next + 1], rows[next + 2])
            let place = enrolled.count
            next += 3
            guard let row = found.first else {
                // The database may have a secret of marks that was not asked for. It is read for
                // the next enrolment.
                secrets.withLock { $0 = nil }
                guard batch.challenge(at: place) != nil else {
                    throw JournalError(.busy, "the marks of another store have come meanwhile")
                }
                enrolled.append(nil)
                continue
            }
            let key = try row.keyRow(apps: apps).asked(by: batch.enrolments[place].keyID)
            enrolled.append(EnrolledRow(key: key, isNew: new.count == 1))
        }
        return enrolled
    }

    package var databaseStatistics: DatabaseStatistics? {
        writer.look()
        reader.look()
        receipts.look()
        return DatabaseStatistics([
            writer.tally.figures(of: .writer), reader.tally.figures(of: .reader),
            follower.tally.figures(of: .listener), receipts.tally.figures(of: .receipts),
        ])
    }

    package func settle() throws(JournalError) {
        guard let piece = pruner.withLock({ $0.piece() }) else { return }
        let rows = try writer.ask(piece)
        pruner.withLock { $0.swept(rows.last?.changedCount ?? 0) }
    }

    package func close() {
        follower.end()
        writer.close()
        reader.close()
        receipts.close()
    }
}

/// Revisions that a database has lost: a standby that had not got the last changes took over. It
/// gives their revisions to the next ones, which are then not above the last one read.
private struct LostRevisions {
    /// The most revisions that a standby may lack. A database that lacks more, or older ones than
    /// ``ageMax`` before the last reading, was put back, and is not used by a gateway that knows
    /// better.
    private static let countMax = 256
    private static let ageMax = Duration.seconds(30)

    private typealias Reading = (revision: Int64, at: ContinuousClock.Instant)

    /// The reader's connections that were made when it last read.
    private var connections: UInt64 = 0
    /// The revision after which changes have to be read again; `nil` for none.
    private var unread: JournalRevision?
    /// When revisions were first read, the oldest first.
    private var readings: [Reading] = []
    private var lastReading = ContinuousClock.now
    /// Whether it was told that some are lost.
    private var isTold = false

    init() {}

    /// All keys were read.
    mutating func loaded(_ revision: JournalRevision, connections made: UInt64) {
        connections = made
        note(revision)
    }

    /// All changes were read that the database has.
    mutating func read() { unread = nil }

    /// The revision after which changes have to be read.
    ///
    /// - known: the last one read.
    /// - reached: that of the database.
    /// - made: the reader's connections that were made so far.
    mutating func start(
        after known: JournalRevision,
        _ reached: JournalRevision,
        connections made: UInt64
    ) -> JournalRevision {
        if made != connections {
            // Maybe to another server.
            connections = made
            let first = JournalRevision(max(known.number - Int64(Self.countMax), 0))
            unread = min(unread ?? first, first)
        }
        if reached < known { unread = min(unread ?? reached, reached) }
        return min(unread ?? known, known)
    }

    /// Whether the gateway goes on with what the database has. Where that lacks a few recent
    /// changes alone, it does so once it was told. What is known of keys here stays.
    mutating func goesOn(from known: JournalRevision, at reached: JournalRevision) -> Bool {
        if reached < known {
            let first = readings.first { $0.revision > reached.number }
            let isRecent = first.map { lastReading - $0.at <= Self.ageMax } ?? false
            let isFew = known.number - reached.number <= Int64(Self.countMax)
            let wasTold = isTold
            isTold = true
            guard wasTold, isRecent, isFew else { return false }
            readings.removeAll { $0.revision > reached.number }
        }
        isTold = false
        note(reached)
        return true
    }

    private mutating func note(_ revision: JournalRevision) {
        lastReading = .now
        guard readings.last?.revision != revision.number else { return }
        readings.append((revision.number, lastReading))
        if readings.count > Self.countMax { readings.removeFirst() }
    }
}
