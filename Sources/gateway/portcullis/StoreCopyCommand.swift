import ArgumentParser
import ConfigurationReading
import DeviceKey
import Dispatch
import Gateway
import KeyStore

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
        let report = try source.copy(to: target) { report in
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
        if report.differingCount > 0 { throw ExitCode(1) }
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
