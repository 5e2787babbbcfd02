import ArgumentParser
import Cryptography
import Inspection

extension VerifyCommand {
    /// `verify attestation`.
    struct Attestation: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "attestation",
            abstract: "Judge an attestation by Apple's steps, and the receipt in it on its own."
        )

        @Option(
            help: "An App ID that is accepted: prefix, full stop, bundle identifier. Repeatable."
        )
        var appID: [String] = []

        @Option(help: "An environment that is accepted: production or development. Repeatable.")
        var environment: [String] = []

        @Option(parsing: .unconditional, help: "The key id that came with it, base64.")
        var keyID: String

        @Option(
            parsing: .unconditional,
            help: "The clientDataHash of attestKey in base64; usually SHA-256 of the challenge."
        )
        var clientDataHash: String

        @Option(help: "When it is judged, such as 2026-04-20T10:00:00Z, or now.")
        var at: String

        @Flag(name: .customLong("macos"), help: "It is a Mac app's, whatever its leaf says.")
        var isMacOS = false

        @Option(
            help: """
                A file with the challenge's octets. Adds "diagnosis": what the app made of it. \
                Never changes the verdict.
                """
        )
        var challenge: String?

        @OptionGroup var trust: Trust
        @OptionGroup var object: Object

        func run() throws {
            try VerifyCommand.finish { () throws(UsageError) in
                var options = AttestationTrial.Options()
                options.appIDs = appID
                options.environments = environment
                options.keyID = keyID
                options.clientDataHash = clientDataHash
                options.at = at
                options.isMacOS = isMacOS
                options.root = try trust.pem()
                if let challenge {
                    options.challenge = try ObjectFile.octets(challenge, place: "--challenge")
                }
                let trial = try AttestationTrial(options, now: .current)
                return trial.report(on: try ObjectFile.object(object.file))
            }
        }
    }
}
