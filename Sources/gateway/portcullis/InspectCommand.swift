import ArgumentParser
import Inspection
import JSONText

/// `inspect`: what an object says, and no verdict.
struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Show what an attestation, an assertion, a receipt or a challenge says.",
        discussion: """
            Prints a JSON object. Nothing is judged and nothing in it is to be believed; see \
            verify. Exits 0, 1 when it is no such object, 2 when it is used wrongly.
            """,
        subcommands: [Attestation.self, Assertion.self, Receipt.self, Challenge.self]
    )

    func run() throws {
        throw ValidationError("Say which: attestation, assertion, receipt or challenge.")
    }

    struct Attestation: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "attestation",
            abstract: "Show the certificates, authenticator data and receipt of an attestation."
        )

        @OptionGroup var object: VerifyCommand.Object

        func run() throws {
            try InspectCommand.finish { () throws(UsageError) in
                ObjectPortrait.attestation(try ObjectFile.object(object.file))
            }
        }
    }

    struct Assertion: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "assertion",
            abstract: "Show the authenticator data of an assertion."
        )

        @OptionGroup var object: VerifyCommand.Object

        func run() throws {
            try InspectCommand.finish { () throws(UsageError) in
                ObjectPortrait.assertion(try ObjectFile.object(object.file))
            }
        }
    }

    struct Receipt: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "receipt",
            abstract: "Show the fields of a receipt."
        )

        @OptionGroup var object: VerifyCommand.Object

        func run() throws {
            try InspectCommand.finish { () throws(UsageError) in
                ObjectPortrait.receipt(try ObjectFile.object(object.file))
            }
        }
    }

    struct Challenge: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "challenge",
            abstract: "Show purpose, number and expiry of a challenge of this gateway."
        )

        @Argument(help: "The challenge itself, a file that holds it, or - for standard input.")
        var challenge: String

        func run() throws {
            try InspectCommand.finish { () throws(UsageError) in
                let report = ObjectPortrait.challenge(Array(challenge.utf8))
                guard report.status == .refused else { return report }
                return ObjectPortrait.challenge(
                    try ObjectFile.octets(challenge, place: "CHALLENGE")
                )
            }
        }
    }

    /// Prints a report and ends with its status: by returning for 0, by throwing for others.
    static func finish(
        _ make: () throws(UsageError) -> Report,
        as text: (JSONValue) -> String = { $0.pretty }
    ) throws {
        let report: Report
        do throws(UsageError) {
            report = try make()
        } catch {
            StandardError.write("portcullis: \(error.message)")
            throw ExitCode(2)
        }
        StandardOutput.write(text(report.json) + "\n")
        if report.status != .accepted { throw ExitCode(report.status.rawValue) }
    }
}
