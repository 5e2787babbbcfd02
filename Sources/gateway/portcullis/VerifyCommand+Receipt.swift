import ArgumentParser
import Cryptography
import Inspection

extension VerifyCommand {
    /// `verify receipt`.
    struct Receipt: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "receipt",
            abstract: "Judge a receipt of Apple's fraud assessment.",
            discussion: """
                The certificates are judged at the moment the receipt was made, which it states. \
                --at is the moment at which you look at it: after its expiration it is refused as \
                receipt-expired. Apple asks that a receipt which was just obtained is not older \
                than five minutes; --max-age 5m asks for that. --renewed judges the receipt as the \
                gateway judges one that it gets in exchange for an older one: type RECEIPT, with \
                plausible times of renewal and expiration, and of the --environment and \
                --newer-than that you give.
                """
        )

        @Option(
            help: "An App ID that is accepted: prefix, full stop, bundle identifier. Repeatable."
        )
        var appID: [String] = []

        @Option(
            parsing: .unconditional,
            help: """
                The attested key, base64 of its X9.62 point of 65 bytes. Left out, the receipt's \
                key is shown and not compared.
                """
        )
        var publicKey: String?

        @Option(
            help: """
                When it is looked at, such as 2026-04-20T10:00:00Z, or now. Left out, its \
                expiration is not judged.
                """
        )
        var at: String?

        @Option(help: "The most age at --at, such as 300s or 5m. Left out, any age will do.")
        var maxAge: String?

        @Flag(help: "Refuse what did not come in exchange for an older receipt.")
        var renewed = false

        @Option(help: "With --renewed: the key's environment, production or development.")
        var environment: String?

        @Option(help: "With --renewed: when the receipt was made that was sent.")
        var newerThan: String?

        @OptionGroup var trust: Trust
        @OptionGroup var object: Object

        func run() throws {
            try VerifyCommand.finish { () throws(UsageError) in
                var options = ReceiptTrial.Options()
                options.appIDs = appID
                options.publicKey = publicKey
                options.at = at
                options.maxAge = maxAge
                options.isRenewed = renewed
                options.environment = environment
                options.newerThan = newerThan
                options.root = try trust.pem()
                let trial = try ReceiptTrial(options, now: .current)
                return trial.report(on: try ObjectFile.object(object.file))
            }
        }
    }
}
