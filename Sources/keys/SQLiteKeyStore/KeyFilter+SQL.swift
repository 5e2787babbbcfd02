internal import GRDB
internal import KeyCatalog
internal import KeyStore

extension KeyFilter {
    /// What the database can say of it, in terms of `KeyColumns.selectRecord`: all that it admits,
    /// and some keys that were used too lately.
    var condition: (sql: String, arguments: StatementArguments) {
        var terms = [deleted == .included ? "true" : "k.deleted_at IS NULL"]
        var arguments: StatementArguments = []
        func add(_ term: String, _ argument: some DatabaseValueConvertible) {
            terms.append(term)
            arguments += [argument]
        }
        if let appID { add("a.app_id = ?", appID) }
        if let environment { add("k.environment = ?", Int64(environment.number)) }
        if let isRevoked { add("(k.revoked_at IS NOT NULL) = ?", isRevoked) }
        if let source { add("k.is_imported = ?", source == .imported) }
        if let riskMin { add("n.risk_metric >= ?", Int64(riskMin)) }
        // Some of these may have been used since: the log of counters says so.
        if let unusedSince { add("coalesce(k.last_used_at, 0) < ?", unusedSince) }
        return (terms.joined(separator: " AND "), arguments)
    }
}
