import ArgumentParser
import Cryptography
import Foundation
import Gateway
import Glibc
import KeyStore

/// The command line. Exit status: 0 for yes, 1 for no (a refusal, an invalid file), 2 for wrong
/// usage.
@main
struct Portcullis: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis",
        abstract: "A reverse proxy that lets only genuine copies of an app reach an API.",
        discussion: """
            `portcullis help TOPIC` prints a page of the texts, such as turn-it-off, \
            counter-replayed or the name of an alert.
            """,
        version: GatewayServer.version,
        subcommands: [
            ServeCommand.self, CheckCommand.self, DiffCommand.self, ExplainCommand.self,
            TestCommand.self, PlanCommand.self,
            InitCommand.self, DoctorCommand.self, SchemaCommand.self,
            KeysCommand.self, ReceiptsCommand.self, StoreCommand.self, OriginsCommand.self,
            FleetCommand.self, ReportCommand.self, RolloutCommand.self, UpgradeCommand.self,
            WhyCommand.self,
            VerifyCommand.self, InspectCommand.self, ReferenceCommand.self,
        ]
    )

    static func main() {
        OpenSSLCleanup.leaveToSystem()
        StandardStreams.prepare()
        printPage(CommandLine.arguments.dropFirst())
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let code as ExitCode {
            Glibc.exit(code.rawValue)
        } catch let problem as StoreProblem {
            StandardError.write("portcullis: \(problem)")
            Glibc.exit(1)
        } catch {
            let isAsked = exitCode(for: error) == .success
            let text = fullMessage(for: error)
            if isAsked { StandardOutput.write(text + "\n") } else { StandardError.write(text) }
            Glibc.exit(isAsked ? 0 : 2)
        }
    }
    /// Ends with the page of `help TOPIC`. The parser handles `help` with the name of a command.
    private static func printPage(_ words: ArraySlice<String>) {
        guard words.count == 2, words.first == "help", let topic = words.last,
            !configuration.subcommands.contains(where: { $0.configuration.commandName == topic })
        else { return }
        let link = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        let pages = HelpPages(besides: URL(filePath: link ?? CommandLine.arguments[0]))
        if let text = pages.text(topic) { Glibc.exit(StandardOutput.write(text) ? 0 : 1) }
        StandardError.write(pages.absence(of: topic))
        Glibc.exit(2)
    }
}
