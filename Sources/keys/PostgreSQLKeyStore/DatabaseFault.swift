internal import KeyStore

/// Why the database did not do its work.
enum DatabaseFault: Error {
    /// No connection could be made.
    ///
    /// - state: the server's state, as in ``refused(state:_:)``; `nil` when it sent none.
    case unreachable(String, state: String?)
    /// The connection was lost, or no answer came in time: the work may have been done.
    case lost(String)
    /// It refused, and nothing was changed.
    ///
    /// - state: five characters (PostgreSQL manual, appendix A).
    case refused(state: String, String)

    /// Whether a retry may succeed at once: other transactions used the same rows.
    var isCollision: Bool {
        guard case .refused(let state, _) = self else { return false }
        return state == "40001" || isDeadlock
    }

    /// Whether transactions waited for each other.
    var isDeadlock: Bool {
        guard case .refused("40P01", _) = self else { return false }
        return true
    }

    /// Whether the connection can't be used any more.
    var endsConnection: Bool {
        guard case .refused(let state, _) = self else { return true }
        // A connection to a standby, or to a server that ends, is useless.
        return state == "25006" || state.hasPrefix("57P") || state.hasPrefix("08")
    }

    var journalError: JournalError {
        switch self {
        case .unreachable(let detail, let state):
            // The server's text has it already.
            JournalError(
                .unusable,
                detail,
                next: DatabaseHint.next(state, detail),
                isOutage: DatabaseHint.isOutage(state, detail)
            )
        case .lost(let detail):
            JournalError(.busy, detail, next: DatabaseHint.next(nil, detail), isOutage: true)
        case .refused(let state, let detail):
            JournalError(
                Self.reason(state),
                "\(detail) (SQLSTATE \(state))",
                next: DatabaseHint.next(state, detail)
            )
        }
    }

    /// Makes a fault of libpq's message about a failed connection, with the SQLSTATE when it has
    /// one: `FATAL: 28P01: password …; LOCATION: auth_failed, auth.c:326`.
    static func connecting(_ message: String) -> DatabaseFault {
        let said = message.split(separator: "; LOCATION: ", maxSplits: 1).first ?? ""
        let state = said.split(separator: ":").dropFirst().lazy
            .map { $0.drop { $0 == " " } }
            .first { word in
                word.utf8.count == 5
                    && word.utf8.allSatisfy { 48...57 ~= $0 || 65...90 ~= $0 }
                    && word.utf8.contains { 48...57 ~= $0 }
            }
        return .unreachable(String(said), state: state.map(String.init))
    }

    /// No server of several gave a connection. A server's message tells more than another one's
    /// silence.
    static func all(_ faults: [DatabaseFault]) -> DatabaseFault {
        var (texts, state): ([String], String?) = ([], nil)
        for case .unreachable(let text, let found) in faults {
            if !texts.contains(text), texts.count < 4 { texts.append(text) }
            state = state ?? found
        }
        let text = texts.isEmpty ? "no server is named" : texts.joined(separator: "; ")
        return .unreachable(text, state: state)
    }

    private static func reason(_ state: String) -> JournalError.Reason {
        switch state {
        // Disk full, and too little memory.
        case "53100", "53200": .full
        // Serialization failure, deadlock, too many connections, cancelled by a timeout.
        case "40001", "40P01", "53300", "57014", "55P03": .busy
        // A table or column is missing.
        case "42P01", "42703": .damaged
        default: .unusable
        }
    }
}

/// The operator's next step after a fault of the database.
///
/// The server's language does not matter: the SQLSTATE identifies its faults (PostgreSQL manual,
/// appendix A). libpq's own messages are in English, since this program asks for no other language.
enum DatabaseHint {
    /// The state of a server without a needed feature (feature not supported).
    static let tooOld = "0A000"

    /// The hint for rows that no gateway writes.
    static let damaged =
        "see in the database's log whether its disk fails, look at the tables with pg_amcheck, and "
        + "ask who else writes to them; then restore a backup of the database, and empty the table "
        + "shared_secrets before gateways start"

    private static let other =
        "see in the database's log why; portcullis doctor FILE tries all that a gateway needs of it"

    /// - state: `nil` when the server has sent none.
    static func next(_ state: String?, _ detail: String) -> String {
        if let state { return next(state) ?? other }
        return words.first { entry in entry.found.contains { detail.contains($0) } }?.next ?? other
    }

    /// Whether a fault of connecting may end by itself: the server does not answer, starts or ends,
    /// or has no connection left; a name can't be looked up now; no server accepts writes. False
    /// for a fault that needs a change of the configuration or the database.
    static func isOutage(_ state: String?, _ detail: String) -> Bool {
        if let state { return state.hasPrefix("57P") || state == "53300" }
        return outages.contains { detail.contains($0) }
    }

    private static let silences = [
        "Connection refused", "No such file", "no connection in time", "No route to host",
        "server closed the connection", "Connection reset",
    ]
    private static let standbys = [
        "session is read-only", "session is not read-only", "server is in hot standby",
    ]
    private static let noNames = ["resolver did not answer", "has no address"]
    private static let outages =
        silences + standbys + noNames + ["Network is unreachable", "Host is unreachable"]

    private static func next(_ state: String) -> String? {
        switch state {
        case "28P01":
            "put the role's password into the file of passfile= (HOST:PORT:DATABASE:USER:PASSWORD, "
                + "mode 0600, the gateway's own), or set it anew: ALTER ROLE … PASSWORD"
        case "28000":
            "let the gateway in: a line of pg_hba.conf for this host, database and role (and "
                + "hostssl for TLS), then SELECT pg_reload_conf(); or make the role: CREATE ROLE … "
                + "LOGIN"
        case "3D000":
            "name a database that is there (dbname=), or make it: CREATE DATABASE …; then "
                + "portcullis store migrate"
        case "42P01", "42703":
            "run portcullis store migrate; where the tables are in another schema, name it: "
                + "options='-c search_path=SCHEMA', and GRANT USAGE ON SCHEMA"
        case "42501":
            "give the role what it needs: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
                + "SCHEMA … TO …, and GRANT USAGE ON SCHEMA …; tables are made by a role that may "
                + "create them"
        case "25006":
            "a standby or a read-only database: name all servers with "
                + "target_session_attrs=read-write, or make one of them take writes again"
        case "53300":
            "raise max_connections, or the role's CONNECTION LIMIT: each gateway has "
                + "\(DatabaseStatistics.Role.allCases.count) connections, and each command one"
        case "53100": "make room on the database's disk"
        case "53200": "give the database's machine more memory, or its work_mem less"
        case "57P03": "nothing when it has just been started; else see in the database's log why"
        case "40001", "40P01", "55P03", "57014":
            "see in pg_stat_activity who holds the locks, and whether the database's disk is slow"
        case "26000", "42P05":
            "use session pooling where a pooler is in between (PgBouncer: pool_mode = session), or "
                + "connect past it: with transaction pooling each transaction may go to another "
                + "connection, without its prepared statements, its settings and its LISTEN"
        case "08P01":
            "use session pooling where a pooler is in between (PgBouncer: pool_mode = session, and "
                + "ignore_startup_parameters = options), or connect past it"
        case tooOld:
            "use PostgreSQL 12 or newer; where a pooler is in between, session pooling with "
                + "prepared statements"
        default: nil
        }
    }

    private static let words: [(found: [String], next: String)] = [
        (
            ["no password supplied", "password retrieved from file"],
            "name the file with the password: passfile=/etc/portcullis/pgpass, mode 0600, the "
                + "gateway's own, with a line HOST:PORT:DATABASE:USER:PASSWORD that fits"
        ),
        (
            ["root certificate file"],
            "name the authority that has signed the server's certificate: sslrootcert=FILE"
        ),
        (
            ["certificate verify failed", "self-signed", "certificate has expired"],
            "name the authority that has signed the server's certificate (sslrootcert=FILE), or "
                + "renew the certificate"
        ),
        (
            ["does not match host name", "server certificate for"],
            "name the server as its certificate does (host=), with hostaddr= for another address"
        ),
        (
            ["does not support SSL"],
            "have the server use TLS (ssl = on), or reach it over a Unix socket"
        ),
        (standbys, "name all servers in host=, so that the one that takes writes is among them"),
        (noNames, "look at /etc/resolv.conf, or use hostaddr="),
        (
            silences,
            "start the database, or look at the network in between: pg_isready -h HOST -p PORT"
        ),
        (
            ["no answer in time"],
            "see in pg_stat_activity what the database does; a slower one needs a longer "
                + "statement_timeout"
        ),
        (
            ["can't read the address"],
            "write it as host=db.example.com dbname=portcullis, with quotes as in 'a b'"
        ),
    ]
}

extension JournalError {
    /// The stored data can't be right.
    static func damaged(_ detail: String) -> JournalError {
        JournalError(.damaged, detail, next: DatabaseHint.damaged)
    }
}
