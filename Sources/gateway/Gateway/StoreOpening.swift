import Challenges
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
        return try attempt(configuration) { () throws(JournalError) in
            try KeyTable(journal: journal)
        }
    }

    /// What issues challenges: those for enrolment with the store's secret.
    static func issuer(
        _ configuration: GatewayConfiguration,
        _ keys: KeyTable
    ) throws(GatewayError) -> ChallengeIssuer {
        let secret = try attempt(configuration) { () throws(JournalError) in
            try keys.enrolmentSecret()
        }
        let settings = configuration.challenges
        return ChallengeIssuer(
            lifetimes: ChallengeIssuer.Lifetimes(
                enrolment: settings.enrolmentLifetime.components.seconds,
                assertion: settings.assertionLifetime.components.seconds
            ),
            capacity: settings.capacity,
            enrolmentSecret: secret
        )
    }

    private static func attempt<Value>(
        _ configuration: GatewayConfiguration,
        _ body: () throws(JournalError) -> Value
    ) throws(GatewayError) -> Value {
        do throws(JournalError) {
            return try body()
        } catch {
            let problem = StoreProblem(error, configuration.storeFile ?? "memory")
            throw GatewayError("the store \(problem.path): \(error)", hint: problem.hint)
        }
    }
}
