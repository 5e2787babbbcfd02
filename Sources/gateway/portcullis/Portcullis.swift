import ArgumentParser
import Cryptography
import Gateway
import Glibc

/// The command line. Exit status: 0 for yes, 1 for no (a refusal, an invalid file), 2 for wrong
/// usage.
@main
struct Portcullis: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis",
        abstract: "A reverse proxy that lets only genuine copies of an app reach an API.",
        version: GatewayServer.version,
        subcommands: [
            ServeCommand.self, CheckCommand.self, DiffCommand.self, ExplainCommand.self,
            TestCommand.self, PlanCommand.self,
            InitCommand.self, DoctorCommand.self, SchemaCommand.self,
            KeysCommand.self, ReceiptsCommand.self, StoreCommand.self, OriginsCommand.self,
            ReportCommand.self, RolloutCommand.self, UpgradeCommand.self, WhyCommand.self,
            VerifyCommand.self, InspectCommand.self,
        ]
    )

    static func main() {
        OpenSSLCleanup.leaveToSystem()
        StandardStreams.prepare()
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let code as ExitCode {
            Glibc.exit(code.rawValue)
        } catch {
            let isAsked = exitCode(for: error) == .success
            let text = fullMessage(for: error)
            if isAsked { StandardOutput.write(text + "\n") } else { StandardError.write(text) }
            Glibc.exit(isAsked ? 0 : 2)
        }
    }
}
