internal import CPostgreSQL
internal import Foundation
internal import KeyStore

/// One connection to the database. Used by one thread at a time.
///
/// Each wait ends at a deadline. After any failure except a refusal the connection is unusable: it
/// is unknown what the database has done.
///
/// `@unchecked Sendable`: its owner has it under a mutex.
final class DatabaseConnection: @unchecked Sendable {
    typealias Deadline = ContinuousClock.Instant

    private let handle: OpaquePointer
    private let notices = Notices()
    /// The names of the statements that this connection has prepared, by their text.
    private var prepared: [String: String] = [:]
    private var nameCount = 0

    /// Connects to the first server that accepts. Each server gets its share of the time.
    ///
    /// - address: libpq's connection string (PostgreSQL manual, section 34.1.1). Unless it says
    ///   otherwise, TLS verifies the server's name, and keepalive probes are on.
    static func open(
        _ address: String,
        names: NameLookUp = .shared,
        until deadline: Deadline
    ) throws(DatabaseFault) -> DatabaseConnection {
        let all = try DatabaseServers(address) { (name) throws(DatabaseFault) in
            try names.addresses(of: name, until: share(of: deadline, among: 2))
        }
        var faults: [DatabaseFault] = []
        for (index, server) in all.servers.enumerated() {
            let end = share(of: deadline, among: all.servers.count - index)
            do throws(DatabaseFault) {
                return try DatabaseConnection(address, server, until: end)
            } catch {
                faults.append(error)
            }
        }
        throw .all(faults)
    }

    /// The deadline of the first of `count` servers, so that the others have as much time.
    private static func share(of deadline: Deadline, among count: Int) -> Deadline {
        let now = ContinuousClock.now
        return now + max(now.duration(to: deadline), .zero) / max(count, 1)
    }

    private init(
        _ address: String,
        _ server: DatabaseServers.Server,
        until deadline: Deadline
    ) throws(DatabaseFault) {
        // Of two settings with one name the last one counts; `dbname` is the whole address.
        let settings =
            [
                ("sslmode", "verify-full"), ("keepalives_idle", "10"),
                ("keepalives_interval", "5"), ("keepalives_count", "3"),
                ("tcp_user_timeout", "30000"), ("fallback_application_name", "portcullis"),
                ("client_encoding", "UTF8"), ("dbname", address),
            ] + server.settings.map { ($0.name, $0.value) }
        let handle = Self.withCStrings(settings.map(\.0)) { names in
            Self.withCStrings(settings.map(\.1)) { values in
                PQconnectStartParams(names, values, 1)
            }
        }
        guard let handle else { throw .unreachable("no memory for a connection", state: nil) }
        self.handle = handle
        // The verbose form has the SQLSTATE also when the server refuses a connection.
        PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        try finishConnecting(server.name, until: deadline)
        PQsetnonblocking(handle, 1)
        // The connection outlives libpq's use of the pointer: `deinit` ends that.
        _ = PQsetNoticeReceiver(
            handle,
            { Notices.take($0, $1) },
            Unmanaged.passUnretained(notices).toOpaque()
        )
        guard PQenterPipelineMode(handle) == 1 else { throw unreachable }
        guard version >= Self.oldestVersion else {
            throw .unreachable(
                "\(server.name) is version \(version / 10_000) of PostgreSQL, or like it",
                state: DatabaseHint.tooOld
            )
        }
    }

    deinit { PQfinish(handle) }

    /// PostgreSQL 12. Other servers with its protocol report the version that they resemble.
    private static let oldestVersion: Int32 = 120_000

    /// In PostgreSQL's form: 150004 is 15.4.
    var version: Int32 { PQserverVersion(handle) }

    private func finishConnecting(
        _ server: String,
        until deadline: Deadline
    ) throws(DatabaseFault) {
        var state = PGRES_POLLING_WRITING
        while PQstatus(handle) != CONNECTION_BAD {
            switch state {
            case PGRES_POLLING_OK: return
            case PGRES_POLLING_READING, PGRES_POLLING_WRITING:
                let events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT
                guard wait(for: events, until: deadline) else {
                    throw .unreachable("\(server) gave no connection in time", state: nil)
                }
            default: throw unreachable
            }
            state = PQconnectPoll(handle)
        }
        throw unreachable
    }

    /// Why there is no connection.
    private var unreachable: DatabaseFault { .connecting(message) }

    /// libpq's message about the last fault, on one line.
    private var message: String {
        String(cString: PQerrorMessage(handle))
            .split(whereSeparator: \.isNewline).joined(separator: "; ")
    }

    /// The socket, to wait for notifications.
    var descriptor: Int32 { PQsocket(handle) }

    /// Whether the server has sent something unasked, or has ended the connection. A connection
    /// that does not listen gets nothing unasked but its end.
    var isOver: Bool {
        var watched = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) > 0
    }

    /// The channels on which others have notified since the last call. Reads the notifications.
    func takeNotifications() throws(DatabaseFault) -> Set<String> {
        guard PQconsumeInput(handle) == 1 else { throw .lost(message) }
        var channels: Set<String> = []
        while let notification = PQnotifies(handle) {
            channels.insert(String(cString: notification.pointee.relname))
            PQfreemem(notification)
        }
        return channels
    }

    // MARK: Statements

    /// Runs statements as one transaction, in one round trip.
    ///
    /// - Returns: the rows of each statement, in order.
    /// - Throws: the first fault. After `refused` nothing has changed, and the connection is good.
    func run(
        _ statements: [DatabaseStatement],
        until deadline: Deadline
    ) throws(DatabaseFault) -> [DatabaseRows] {
        notices.standbyWaitEnded = false
        var isNew: [Bool] = []
        for statement in statements { isNew.append(try send(statement)) }
        guard PQpipelineSync(handle) == 1 else { throw .lost(message) }
        var rows: [DatabaseRows] = []
        var fault: DatabaseFault?
        for (statement, isNew) in zip(statements, isNew) {
            if isNew, case .failure(let refusal) = try outcome(until: deadline) {
                prepared[statement.sql] = nil
                fault = fault ?? refusal
            }
            switch try outcome(until: deadline) {
            case .success(let found): rows.append(found)
            case .failure(let refusal): fault = fault ?? refusal
            }
        }
        let refusal = try finish(until: deadline)
        if let fault = fault ?? refusal { throw fault }
        // It is committed on this server, and the standby may not have it: a failover may lose it.
        if notices.standbyWaitEnded {
            throw .lost("the commit's wait for a synchronous standby was cancelled")
        }
        return rows
    }

    /// Sends a statement, which is prepared at its first use.
    private func send(_ statement: DatabaseStatement) throws(DatabaseFault) -> Bool {
        let values = statement.values
        let types = values.map(\.type)
        let known = prepared[statement.sql]
        if known == nil { nameCount += 1 }
        let name = known ?? "p\(nameCount)"
        if known == nil {
            guard PQsendPrepare(handle, name, statement.sql, Int32(types.count), types) == 1 else {
                throw .lost(message)
            }
            prepared[statement.sql] = name
        }
        let encoded = values.map(\.encoded)
        let isSent = Self.withPointers(encoded) { pointers in
            PQsendQueryPrepared(
                handle,
                name,
                Int32(values.count),
                pointers,
                encoded.map { Int32(clamping: $0?.count ?? 0) },
                values.map { $0.isBinary ? 1 : 0 },
                1
            )
        }
        guard isSent == 1 else { throw .lost(message) }
        return known == nil
    }

    /// The answer of one statement, up to the NULL that ends it: its rows, or a refusal.
    private func outcome(
        until deadline: Deadline
    ) throws(DatabaseFault) -> Result<DatabaseRows, DatabaseFault> {
        guard let result = try next(until: deadline) else { throw .lost("no answer") }
        let rows = DatabaseRows(result)
        guard try next(until: deadline) == nil else { throw .lost("an answer too many") }
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK: return .success(rows)
        case PGRES_PIPELINE_ABORTED:
            return .failure(.refused(state: "25P02", "a statement before it failed"))
        default:
            guard let refusal = Self.refusal(result) else { throw .lost(message) }
            return .failure(refusal)
        }
    }

    /// The end of the transaction. A refusal may come only now.
    ///
    /// - Returns: why it was refused.
    private func finish(until deadline: Deadline) throws(DatabaseFault) -> DatabaseFault? {
        var refusal: DatabaseFault?
        // A refusal, the NULL after it, and the end.
        for _ in 0..<4 {
            guard let result = try next(until: deadline) else { continue }
            // Freed with the rows.
            let rows = DatabaseRows(result)
            defer { withExtendedLifetime(rows) {} }
            if PQresultStatus(result) == PGRES_PIPELINE_SYNC { return refusal }
            guard let found = Self.refusal(result) else { throw .lost(message) }
            refusal = found
        }
        throw .lost("the transaction did not end")
    }

    /// The refusal in a result; `nil` when it does not come from the server.
    private static func refusal(_ result: OpaquePointer) -> DatabaseFault? {
        guard let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))) else { return nil }
        let detail = PQresultErrorField(result, Int32(UInt8(ascii: "M")))
        let text = detail.map { String(cString: $0) } ?? "refused"
        return .refused(state: String(cString: state), text)
    }

    private func next(until deadline: Deadline) throws(DatabaseFault) -> OpaquePointer? {
        while true {
            let flushed = PQflush(handle)
            guard flushed >= 0 else { throw .lost(message) }
            if PQisBusy(handle) == 0 { return PQgetResult(handle) }
            let events = flushed == 1 ? POLLIN | POLLOUT : POLLIN
            guard wait(for: events, until: deadline) else { throw .lost("no answer in time") }
            guard PQconsumeInput(handle) == 1 else { throw .lost(message) }
        }
    }

    // MARK: Waiting

    /// Waits for the socket; false when the deadline has passed.
    private func wait(for events: Int32, until deadline: Deadline) -> Bool {
        while true {
            let left = ContinuousClock.now.duration(to: deadline).components
            guard left.seconds >= 0, left.attoseconds >= 0 else { return false }
            let milliseconds = left.seconds * 1_000 + left.attoseconds / 1_000_000_000_000_000 + 1
            var watched = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
            let ready = poll(&watched, 1, Int32(clamping: milliseconds))
            if ready > 0 { return true }
            // A signal may have come.
            if ready < 0, errno != EINTR { return false }
        }
    }

    private static func withCStrings<Value>(
        _ texts: [String],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Value
    ) -> Value {
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        let pointers = copies.map { UnsafePointer<CChar>($0) } + [nil]
        return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
    }

    private static func withPointers<Value>(
        _ values: [[UInt8]?],
        _ body: ([UnsafePointer<CChar>?]) -> Value
    ) -> Value {
        // One piece of memory, so that no pointer outlives what it points to.
        let all = values.reduce(into: [CChar]()) { all, value in
            all.append(contentsOf: (value ?? []).map { CChar(bitPattern: $0) })
        }
        return (all + [0]).withUnsafeBufferPointer { memory in
            var offset = 0
            let pointers = values.map { value -> UnsafePointer<CChar>? in
                guard let value, let start = memory.baseAddress else { return nil }
                defer { offset += value.count }
                return start + offset
            }
            return body(pointers)
        }
    }
}

/// Notices that the server sends beside its answers. Used where its connection is used.
private final class Notices {
    /// The wait of a commit for a synchronous standby was cancelled (PostgreSQL manual, section
    /// 26.2.8.3). The server answers it with a warning and as done.
    var standbyWaitEnded = false

    /// PostgreSQL's function for this wait. The text of the warning is in the server's language,
    /// and its SQLSTATE, 01000, is that of all warnings.
    private static let waiting = "SyncRepWaitForLSN"

    static func take(_ place: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {
        guard let place, let result,
            let function = PQresultErrorField(result, Int32(UInt8(ascii: "R"))),
            String(cString: function) == waiting
        else { return }
        Unmanaged<Notices>.fromOpaque(place).takeUnretainedValue().standbyWaitEnded = true
    }
}
