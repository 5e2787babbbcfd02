import ArgumentParser
import ConfigurationReading
import Gateway
import KeyCatalog
import KeyStore
import PostgreSQLKeyStore

struct StoreMigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Make the tables in PostgreSQL, or bring them to this version.",
        discussion: """
            Gateways of this version and of the one before may run meanwhile. It changes nothing \
            where the tables are as they should be. A database file needs no such command.
            """
    )

    @Argument(help: "The gateway's configuration file; it names the store.")
    var file: String

    func run() throws {
        guard case .postgresql(let database) = try LoadedFile.store(file).store else {
            StandardError.write("\(file) names no store in PostgreSQL, so there is nothing to make")
            throw ExitCode(1)
        }
        let outcome = try KeyStoreOptions.attempt { () throws(StoreProblem) in
            do throws(JournalError) {
                return try DatabaseMigration.run(PostgreSQLSettings(database))
            } catch {
                throw StoreProblem(error, database.address)
            }
        }
        let steps = outcome.made.map(String.init).joined(separator: ", ")
        if !outcome.made.isEmpty {
            StandardOutput.write("made: version \(steps)\n")
        } else if outcome.isNewer {
            StandardOutput.write(
                "the tables are of version \(outcome.version), newer than this program's, "
                    + "which can use them\n"
            )
        } else {
            StandardOutput.write("up to date\n")
        }
    }
}
