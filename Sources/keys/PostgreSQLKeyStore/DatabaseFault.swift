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
