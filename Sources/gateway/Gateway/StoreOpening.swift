import ConfigurationReading
import KeyCatalog
import KeyStore
import SQLiteKeyStore

/// Opens the store that a configuration names.
enum StoreOpening {
    /// - Throws: what is wrong with the file and how to go on.
    static func table(
        _ configuration: GatewayConfiguration,
        _ open: (String) -> Result<any KeyJournal, StoreProblem>
    ) throws(GatewayError) -> KeyTable {
        let journal: any KeyJournal
        do throws(StoreProblem) {
            // Without a store nothing is verified, so there is nothing to keep.
            if let file = configuration.storeFile {
                journal = try open(file).get()
            } else {
                journal = MemoryJournal()
            }
        } catch {
            throw GatewayError("the store \(error.path): \(error.detail)", hint: error.hint)
        }
        do throws(JournalError) {
            return try KeyTable(journal: journal)
        } catch {
            let problem = StoreProblem(error, configuration.storeFile ?? "memory")
            throw GatewayError("the store \(problem.path): \(error)", hint: problem.hint)
        }
    }
}
