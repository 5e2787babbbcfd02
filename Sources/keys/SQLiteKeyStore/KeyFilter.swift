internal import GRDB
package import KeyStore

/// Which keys a command is about; what is `nil` does not matter.
package struct KeyFilter: Sendable {
    package var appID: String?
    package var environment: KeyEnvironment?
    package var isRevoked: Bool?
    package var source: KeyRecord.Source?
    /// Not used since this second of Unix time, or never.
    package var unusedSince: Int64?

    package init() {}

    /// What ``condition`` can't say: whether a key whose newest counters are known was used too
    /// lately.
    func admits(_ record: KeyRecord) -> Bool {
        unusedSince.map { record.lastUsedAt ?? 0 < $0 } ?? true
    }

    /// The condition, in terms of `KeyColumns.selectRecord`.
    var condition: (sql: String, arguments: StatementArguments) {
        var terms: [String] = []
        var arguments: StatementArguments = []
        func add(_ term: String, _ argument: some DatabaseValueConvertible) {
            terms.append(term)
            arguments += [argument]
        }
        if let appID { add("a.app_id = ?", appID) }
        if let environment { add("k.environment = ?", Int64(environment.number)) }
        if let isRevoked { add("(k.revoked_at IS NOT NULL) = ?", isRevoked) }
        if let source { add("k.is_imported = ?", source == .imported) }
        // Some of these may have been used since: the log of counters says so.
        if let unusedSince { add("coalesce(k.last_used_at, 0) < ?", unusedSince) }
        return (terms.isEmpty ? "1" : terms.joined(separator: " AND "), arguments)
    }
}
