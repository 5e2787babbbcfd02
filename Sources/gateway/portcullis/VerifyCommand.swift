import ArgumentParser
import ConfigurationReading
import Cryptography
import Encodings

/// `verify`: one object, one verdict, one line of JSON. Exit status: 0 accepted, 1 refused, 2 wrong
/// usage.
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Judge an attestation, an assertion, a receipt or an Android chain.",
        discussion: """
            Prints one JSON object on one line: {"verdict": "accept", …} or {"verdict": "refuse", \
            "reason": …, "detail": …}. Exits 0 when it accepts, 1 when it refuses, 2 when it is \
            used wrongly.
            """,
        subcommands: [Attestation.self, Assertion.self, Receipt.self, Android.self]
    )

    /// The object to judge.
    struct Object: ParsableArguments {
        @Argument(help: "The object, raw or in base64; - for standard input.")
        var file: String
    }

    /// The trusted roots.
    struct Trust: ParsableArguments {
        @Option(help: "A PEM file of roots to trust in place of Apple's, for tests.")
        var root: String?

        /// The content of the file.
        func pem() throws(UsageError) -> [UInt8]? {
            guard let root else { return nil }
            return try ObjectFile.whole(root, place: "--root")
        }
    }

    func run() throws {
        throw ValidationError("Say which: attestation, assertion, receipt or android.")
    }

    /// Prints a report on one line and ends with its status.
    static func finish(_ make: () throws(UsageError) -> TrialReport) throws {
        try InspectCommand.finish(make) { $0.line }
    }
}

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
                    options.clientData = try ObjectFile.whole(clientData, place: "--client-data")
                }
                let trial = try AssertionTrial(options)
                return trial.report(on: try ObjectFile.object(object.file))
            }
        }
    }
}

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
                A file with the challenge's bytes. Adds "diagnosis": what the app made of it. \
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
                    options.challenge = try ObjectFile.whole(challenge, place: "--challenge")
                }
                let trial = try AttestationTrial(options, now: .current)
                return trial.report(on: try ObjectFile.object(object.file))
            }
        }
    }
}

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

extension VerifyCommand {
    /// `verify android`.
    struct Android: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "android",
            abstract: "Judge a chain of Android's key attestation, and what its key signed.",
            discussion: """
                FILE is PEM, the leaf first, with or without the root. What the certificates say \
                is printed whether they are believed or not.
                """
        )

        @Option(help: "The package name that is accepted.")
        var app: String

        @Option(
            help: """
                SHA-256 of a signing certificate that is accepted, in hexadecimal. Repeatable. \
                Left out, every app is refused.
                """
        )
        var signer: [String] = []

        @Option(
            name: .customLong("challenge-b64"),
            parsing: .unconditional,
            help: "What the app gave to setAttestationChallenge, base64."
        )
        var challenge: String

        @Option(help: "When it is judged, such as 2026-04-20T10:00:00Z, or now.")
        var at: String

        @Option(help: "A file with Google's status list. Left out, no certificate is revoked.")
        var status: String?

        @Option(help: "A PEM file of roots to trust in place of Google's, for tests.")
        var root: String?

        @Option(
            help: """
                A JSON object of what differs from the standard policy: security_levels, \
                boot_states, require_locked, origins, provisioning, min_os_patch_level.
                """
        )
        var policy: String?

        @Option(
            name: .customLong("message-b64"),
            parsing: .unconditional,
            help: "A message that the attested key signed, base64."
        )
        var message: String?

        @Option(
            name: .customLong("signature-b64"),
            parsing: .unconditional,
            help: "Its signature, ECDSA with SHA-256 in DER, base64."
        )
        var signature: String?

        @Argument(help: "The chain in PEM; - for standard input.")
        var file: String

        func run() throws {
            try VerifyCommand.finish { () throws(UsageError) in
                var options = AndroidTrial.Options()
                options.app = app
                options.signers = signer
                options.challenge = challenge
                options.at = at
                options.policy = policy
                options.message = message
                options.signature = signature
                if let status { options.status = try ObjectFile.whole(status, place: "--status") }
                if let root { options.root = try ObjectFile.whole(root, place: "--root") }
                let trial = try AndroidTrial(options, now: .current)
                return trial.report(on: try ObjectFile.bytes(file))
            }
        }
    }
}
