import Configuration
import SQLiteStore
import Store

/// Opens the store that a configuration names.
enum StoreOpening {
    /// - Throws: what is wrong with the file and how to go on.
    static func table(_ configuration: GatewayConfiguration) throws(GatewayError) -> KeyTable {
        let journal: any KeyJournal
        do throws(StoreProblem) {
            // Without a store nothing is verified, so there is nothing to keep.
            if let file = configuration.storeFile {
                journal = try SQLiteKeyJournal(path: file)
            } else {
                journal = MemoryJournal()
            }
        } catch {
            throw GatewayError("the store \(error.path): \(error.detail)", hint: error.hint)
        }
        do throws(JournalError) {
            return try KeyTable(journal: journal)
        } catch {
            throw GatewayError(
                "the store \(configuration.storeFile ?? ""): \(error)",
                hint: "Put back a copy of the database, or export the keys and import them anew."
            )
        }
    }
}
