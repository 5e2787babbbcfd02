package import ConfigurationReading
package import KeyCatalog
import KeyStore
import PostgreSQLKeyStore
import SQLiteKeyStore

extension StorePlace {
    /// The store as commands see it, to read and to change it.
    ///
    /// - creates: makes a database file that is not there.
    /// - Returns: `nil` where there is no store.
    package func archive(creates: Bool = false) throws(StoreProblem) -> (any KeyArchive)? {
        switch self {
        case .none: nil
        case .sqlite(let file): try KeyAdministration(path: file, creates: creates)
        case .postgresql(let database): try PostgreSQLKeyArchive(PostgreSQLSettings(database))
        }
    }

    /// The same, to read alone.
    package func readableArchive() throws(StoreProblem) -> (any KeyArchive)? {
        guard case .sqlite(let file) = self else { return try archive() }
        return try KeyAdministration(reading: file)
    }
}

extension PostgreSQLSettings {
    package init(_ settings: DatabaseSettings) {
        self.init(address: settings.address)
        connectTimeout = settings.connectTimeout
        statementTimeout = settings.statementTimeout
        keysCached = settings.keysCached
        revokedWithin = settings.revokedWithin
    }
}
