import ByteCoding
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
        _ surroundings: GatewayServer.Surroundings
    ) throws(GatewayError) -> KeyTable {
        let journal: any KeyJournal
        // From here on the process before waits, and decides nothing.
        let loan = try surroundings.predecessor?.takeState(configuration).loan
        func open(_ file: String) -> Result<any KeyJournal, StoreProblem> {
            guard let loan else { return surroundings.openJournal(file) }
            return Result { () throws(StoreProblem) in
                try SQLiteKeyJournal(path: file, loan: loan)
            }
        }
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
        _ keys: KeyTable,
        _ predecessor: Predecessor?
    ) throws(GatewayError) -> ChallengeIssuer {
        let secret = try attempt(configuration) { () throws(JournalError) in
            try keys.enrolmentSecret()
        }
        let settings = configuration.challenges
        let lifetimes = ChallengeIssuer.Lifetimes(
            enrolment: settings.enrolmentLifetime.components.seconds,
            assertion: settings.assertionLifetime.components.seconds
        )
        guard let state = predecessor?.state?.challenges else {
            return ChallengeIssuer(
                lifetimes: lifetimes,
                capacity: settings.capacity,
                enrolmentSecret: secret
            )
        }
        do throws(ByteReader.Fault) {
            return try ChallengeIssuer(
                lifetimes: lifetimes,
                capacity: settings.capacity,
                enrolmentSecret: secret,
                goingOnFrom: state
            )
        } catch {
            throw Predecessor.garbled
        }
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
