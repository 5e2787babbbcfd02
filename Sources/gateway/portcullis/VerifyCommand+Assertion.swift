import ArgumentParser
import Inspection

extension VerifyCommand {
    /// `verify assertion`.
    struct Assertion: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "assertion",
            abstract: "Judge an assertion against the key that was attested."
        )

        @Option(
            help: "An App ID that is accepted: prefix, full stop, bundle identifier. Repeatable."
        )
        var appID: [String] = []

        @Option(
            parsing: .unconditional,
            help: "The attested key, base64 of its X9.62 point of 65 bytes."
        )
        var publicKey: String

        @Option(parsing: .unconditional, help: "SHA-256 of the client data, base64.")
        var clientDataHash: String?

        @Option(help: "A file with the client data, instead of its hash.")
        var clientData: String?

        @Option(help: "The counter of the last accepted assertion; 0 after the attestation.")
        var previousCounter: UInt32

        @Flag(
            help: """
                Adds "diagnosis": which known mistake of a client would have verified. Finds more \
                with --client-data. Never changes the verdict.
                """
        )
        var diagnose = false

        @OptionGroup var object: Object

        func run() throws {
            try VerifyCommand.finish { () throws(UsageError) in
                var options = AssertionTrial.Options()
                options.appIDs = appID
                options.publicKey = publicKey
                options.clientDataHash = clientDataHash
                options.previousCounter = previousCounter
                options.diagnoses = diagnose
                if let clientData {
                    options.clientData = try ObjectFile.octets(clientData, place: "--client-data")
                }
                let trial = try AssertionTrial(options)
                return trial.report(on: try ObjectFile.object(object.file))
            }
        }
    }
}
