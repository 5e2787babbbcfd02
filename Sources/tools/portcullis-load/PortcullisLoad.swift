import ArgumentParser
import ConfigurationReading
import Cryptography
import Glibc
import LoadGenerator
import Telemetry

// Load for a gateway, from devices made of software.
//
//   prepare   a fleet out of a seed: keys to import, a root for test_root
//   enrol     brings a fleet into a gateway through its endpoints
//   run       sends requests and judges every answer
//   sign      signs one request, and prints the fields for curl or another client

/// Exit status: 0 when all is as expected, 1 when a run's answers are not, 2 for wrong usage and
/// for what can't be done.
@main
struct PortcullisLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis-load",
        abstract: "Load for a gateway, in which every request has an answer that is expected.",
        version: ProgramVersion.text,
        subcommands: [PrepareCommand.self, EnrolCommand.self, RunCommand.self, SignCommand.self]
    )

    static func main() async {
        OpenSSLCleanup.leaveToSystem()
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            // Printed text is written here at the latest.
            guard fflush(nil) == 0 else {
                let why = String(cString: strerror(errno))
                throw LoadError("standard output can't be written: \(why)")
            }
        } catch let code as ExitCode {
            Glibc.exit(code.rawValue)
        } catch let error as LoadError {
            DiagnosticOutput.write("portcullis-load: \(error)\n")
            Glibc.exit(2)
        } catch {
            let isAsked = exitCode(for: error) == .success
            let text = fullMessage(for: error) + "\n"
            if isAsked { print(text, terminator: "") } else { DiagnosticOutput.write(text) }
            Glibc.exit(isAsked ? 0 : 2)
        }
    }
}
