import ArgumentParser
import ConfigurationReading
import KeyStore
import Rules

struct KeysImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Take over keys that were verified elsewhere.",
        discussion: """
            Each line is a JSON object: key_id, app_id, environment, public_key (base64 of the \
            65-byte X9.62 point), counter. Nothing is imported when any line is wrong. A key that \
            is stored already keeps what it has; its counter is only raised.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Flag(help: "Import the lines without a problem although others have one.")
    var skipProblems = false

    @Argument(help: "The file of lines; - for standard input.")
    var lines: String

    func run() throws {
        let (keys, settings) = try store.administration(creates: true)
        let apps = Set(settings.apps.map(\.id))
        let report = try keys.importLines(from: lines, apps: apps, skipsProblems: skipProblems)
        for problem in report.problems { StandardError.write("\(lines): \(problem)") }
        let unlisted = report.problemCount - report.problems.count
        if unlisted > 0 { StandardError.write("\(lines): \(unlisted) more problems") }
        for warning in report.warnings { StandardError.write("warning: \(warning)") }
        guard report.isImported else {
            StandardError.write("nothing was imported; correct the lines, or use --skip-problems")
            throw ExitCode(1)
        }
        StandardOutput.write(
            "imported: \(report.inserted), stored already: \(report.merged)\n"
        )
        if report.problemCount > 0 { throw ExitCode(1) }
    }
}
