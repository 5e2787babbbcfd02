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
                than five minutes; --max-age 5m asks for that.
                """
        )

        @Option(
            help: "An App ID that is accepted: prefix, full stop, bundle identifier. Repeatable."
        )
        var appID: [String] = []

        @Option(
            parsing: .unconditional,
            help: """
                The attested key, base64 of its X9.62 point of 65 octets. Left out, the receipt's \
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

        @OptionGroup var trust: Trust
        @OptionGroup var object: Object

        func run() throws {
            try VerifyCommand.finish { () throws(UsageError) in
                var options = ReceiptTrial.Options()
                options.appIDs = appID
                options.publicKey = publicKey
                options.at = at
                options.maxAge = maxAge
                options.root = try trust.pem()
                let trial = try ReceiptTrial(options, now: .current)
                return trial.report(on: try ObjectFile.object(object.file))
            }
        }
    }
}
