internal import KeyStore

/// Why the database did not do what it was asked.
enum DatabaseFault: Error {
    /// No connection could be made.
    case unreachable(String)
    /// The connection was lost, or no answer came in time: what was asked may have been done.
    case lost(String)
    /// It refused, and nothing was changed.
    ///
    /// - state: five characters (PostgreSQL manual, appendix A).
    case refused(state: String, String)

    /// Whether the same may be good when it is asked again at once: others were at the same rows.
    var isCollision: Bool {
        guard case .refused(let state, _) = self else { return false }
        return state == "40001" || state == "40P01"
    }

    /// Whether the connection can't be used any more.
    var endsConnection: Bool {
        guard case .refused(let state, _) = self else { return true }
        // A connection that has found a standby, or a server that ends, is worth nothing.
        return state == "25006" || state.hasPrefix("57P") || state.hasPrefix("08")
    }

    var journalError: JournalError {
        switch self {
        case .unreachable(let detail): JournalError(.unusable, detail)
        case .lost(let detail): JournalError(.busy, detail)
        case .refused(let state, let detail):
            JournalError(Self.reason(state), "\(detail) (SQLSTATE \(state))")
        }
    }

    private static func reason(_ state: String) -> JournalError.Reason {
        switch state {
        // Disk full, and too little memory.
        case "53100", "53200": .full
        // Serialization failure, deadlock, too many connections, cancelled by a timeout.
        case "40001", "40P01", "53300", "57014", "55P03": .busy
        // A table or column that is not there.
        case "42P01", "42703": .damaged
        default: .unusable
        }
    }
}
