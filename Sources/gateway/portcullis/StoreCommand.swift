import ArgumentParser
import ConfigurationReading
import DeviceKey
import Dispatch
import Gateway
import KeyStore
import PostgreSQLKeyStore
import SQLiteKeyStore

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Back up the store of keys, check it, restore it, make its tables, copy it.",
        subcommands: [
            StoreBackupCommand.self, StoreCheckCommand.self, StoreRestoreCommand.self,
            StoreMigrateCommand.self, StoreCopyCommand.self,
        ]
    )
}

struct StoreBackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy the store into a new file, with or without a running gateway.",
        discussion: """
            The copy holds every request that was admitted before this command began. It has the \
            secret of the enrolment challenges too, so its mode is 0600. `store restore` puts it \
            back.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Argument(help: "The file to make; it must not exist.")
    var file: String

    func run() throws {
        let path = try store.path()
        let report = try StoreBackup.make(ofStore: path, to: file)
        StandardOutput.write(
            "\(file): keys \(report.keys), generation \(report.generation), bytes \(report.bytes)\n"
        )
    }
}

struct StoreCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Look for what is wrong with the store or a copy of it, and change nothing.",
        discussion: """
            Reads everything: damage, the version of the tables, each key, the log of counters, \
            the generation, permissions, the room on the disk. Exits 1 when there is a problem.
            """
    )

    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the store."
    )
    var configuration: String?

    @Argument(help: "A copy to look at in place of the store.")
    var file: String?

    func validate() throws {
        guard (configuration == nil) != (file == nil) else {
            throw ValidationError("Name a copy, or the configuration with --config.")
        }
    }

    func run() throws {
        let examination: StoreExamination
        if let file {
            examination = StoreExamination(of: file, as: .copy)
        } else {
            let path = try KeyStoreOptions.path(configuration ?? "")
            examination = StoreExamination(of: path, as: .store)
        }
        for finding in examination.findings {
            StandardOutput.write("\(finding.weight.rawValue): \(finding.text)\n")
        }
        if !examination.isGood { throw ExitStatus.no }
    }
}

struct StoreMigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Make the tables in PostgreSQL.",
        discussion: """
            As a role that may create tables, which the gateway's need not. It changes nothing \
            where they are made already. A database file needs no such command.
            """
    )

    @OptionGroup var place: ConfigurationFileOptions

    private var file: String { place.path }

    func run() throws {
        guard case .postgresql(let database) = try LoadedFile.store(file).store else {
            StandardError.write("\(file) names no store in PostgreSQL, so there is nothing to make")
            throw ExitStatus.no
        }
        let isMade: Bool
        do throws(JournalError) {
            isMade = try DatabaseTables.make(database)
        } catch {
            throw StoreProblem(error, database.address)
        }
        StandardOutput.write(isMade ? "made\n" : "up to date\n")
    }
}

struct StoreRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put a backup in the place of the store's database. Stop the gateway first.",
        discussion: """
            The database that is there is kept beside the new one. Where it can be read, all that \
            it knows is merged: keys, counters, revocations, deletions. Where it can't, keys that \
            were revoked since the backup are good again, keys that were enrolled since are \
            unknown, and each other key needs a challenge before it is good, so that no assertion \
            passes twice.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @OptionGroup var reason: ChangeNoteOptions

    @Argument(help: "What `store backup` has made.")
    var file: String

    func run() throws {
        let path = try store.path()
        let report = try StoreRestore(of: file, toStore: path, reason.note).run()
        StandardOutput.write("\(path): restored from \(file), keys \(report.keys)\n")
        if let kept = report.kept {
            StandardOutput.write("the database that was there is \(kept)\n")
        }
        switch report.present {
        case .merged: StandardOutput.write("all that it knew is merged: nothing was lost\n")
        case .lost(let detail):
            StandardError.write(
                """
                warning: the database that was there could not be merged: it \(detail)
                  keys revoked or deleted since the backup are good again: revoke them anew
                  keys enrolled since are unknown: their devices enrol again
                  every other key is good again with its next challenge; where a rule takes none, \
                the app enrols another key
                """
            )
        }
    }
}

struct StoreCopyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy",
        abstract: "Copy all keys into another store: from SQLite to PostgreSQL, or back.",
        discussion: """
            Both stores may be in use. Counters only rise, and a key that either store has revoked \
            or deleted is. Copy while the old gateway serves; then stop it, copy again, which only \
            compares what is there already, and start the new ones. Two stores that serve at once \
            would each admit an assertion.
            """
    )

    /// Seconds between two lines of progress.
    private static let progressSeconds: UInt64 = 5

    @Option(help: "The configuration file that names the store to read.")
    var from: String

    @Option(help: "The configuration file that names the store to write.")
    var to: String

    @Flag(help: "Say what would be done, and write nothing.")
    var dryRun = false

    func run() throws {
        let (old, new) = (try LoadedFile.store(from).store, try LoadedFile.store(to).store)
        if case .none = new { throw KeyStoreOptions.noStore(to) }
        guard old != new else { throw ValidationError("\(from) and \(to) name the same store.") }
        guard let source = try old.readableArchive() else { throw KeyStoreOptions.noStore(from) }
        let target: CopyTarget
        if dryRun {
            target = .rehearsal(of: try reached(new))
        } else {
            guard let made = try new.archive(creates: true) else {
                throw KeyStoreOptions.noStore(to)
            }
            target = .store(made)
        }
        let beganAt = DispatchTime.now().uptimeNanoseconds
        var lines: UInt64 = 0
        let report = try source.copy(to: target, ChangeNoteOptions.ofErasure) { report in
            let seconds = (DispatchTime.now().uptimeNanoseconds &- beganAt) / 1_000_000_000
            guard seconds / Self.progressSeconds > lines else { return }
            lines = seconds / Self.progressSeconds
            StandardError.write("\(report.count) keys so far")
        }
        for (keyID, why) in report.differing {
            StandardError.write("\(keyID.logName): not copied: \(why)")
        }
        let unlisted = report.differingCount - report.differing.count
        if unlisted > 0 { StandardError.write("\(unlisted) more keys were not copied") }
        StandardOutput.write(
            """
            \(dryRun ? "would copy" : "copied"): new \(report.inserted), \
            brought up to date \(report.raised), as they were \(report.unchanged), \
            deleted \(report.deleted), not copied \(report.differingCount)

            """
        )
        if report.differingCount > 0 { throw ExitStatus.no }
    }

    /// The target store in its current state; `nil` where it is still to be created.
    private func reached(_ place: StorePlace) throws -> (any KeyArchive)? {
        do throws(StoreProblem) {
            return try place.readableArchive()
        } catch  where error.reason == .missing {
            return nil
        }
    }
}
