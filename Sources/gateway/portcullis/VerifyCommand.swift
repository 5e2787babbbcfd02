import ArgumentParser
import Inspection
import JSONText

/// `verify`: one object, one verdict, one line of JSON. Exit status: 0 accepted, 1 refused, 2 wrong
/// usage.
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Judge an attestation, an assertion or a receipt.",
        discussion: """
            Prints one JSON object on one line: {"verdict": "accept", …} or {"verdict": "refuse", \
            "reason": …, "detail": …}. Exits 0 when it accepts, 1 when it refuses, 2 when it is \
            used wrongly.
            """,
        subcommands: [Attestation.self, Assertion.self, Receipt.self]
    )

    /// The object to judge.
    struct Object: ParsableArguments {
        @Argument(help: "The object, raw or in base64; - for standard input.")
        var file: String
    }

    /// Who is trusted.
    struct Trust: ParsableArguments {
        @Option(help: "A PEM file of roots to trust in place of Apple's, for tests.")
        var root: String?

        /// The content of the file.
        func pem() throws(UsageError) -> [UInt8]? {
            guard let root else { return nil }
            return try ObjectFile.octets(root, place: "--root")
        }
    }

    func run() throws {
        throw ValidationError("Say which: attestation, assertion or receipt.")
    }

    /// Prints a report on one line and ends accordingly.
    static func finish(_ make: () throws(UsageError) -> Report) throws {
        try InspectCommand.finish(make) { $0.line }
    }
}
