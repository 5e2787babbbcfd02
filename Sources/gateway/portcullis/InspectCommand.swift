import ArgumentParser
import ConfigurationReading
import Encodings

/// `inspect`: the contents of an object, without a verdict.
struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Show what an attestation, an assertion, a receipt or a challenge says.",
        discussion: """
            Prints a JSON object. Nothing is judged and nothing in it is to be believed; see \
            verify. Exits 0, 1 when it is no such object, 2 when it is used wrongly.
            """
    )

    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case attestation, assertion, receipt, challenge
    }

    @Argument(help: "What it is: attestation, assertion, receipt or challenge.")
    var kind: Kind

    @Argument(
        help: """
            The file that holds it, raw or in base64; - for standard input. A challenge of this \
            gateway itself will do, too.
            """
    )
    var object: String

    func run() throws {
        try Self.finish { () throws(UsageError) in
            switch kind {
            case .attestation: ObjectDescription.attestation(try ObjectFile.object(object))
            case .assertion: ObjectDescription.assertion(try ObjectFile.object(object))
            case .receipt: ObjectDescription.receipt(try ObjectFile.object(object))
            case .challenge: try challenge()
            }
        }
    }

    /// The challenge itself, or what a file has.
    private func challenge() throws(UsageError) -> TrialReport {
        let report = ObjectDescription.challenge(Array(object.utf8))
        guard report.status == .refused else { return report }
        return ObjectDescription.challenge(try ObjectFile.bytes(object, place: "CHALLENGE"))
    }

    /// Prints a report and ends with its status: returns for 0, and throws for others.
    static func finish(
        _ make: () throws(UsageError) -> TrialReport,
        as text: (JSONValue) -> String = { $0.pretty }
    ) throws {
        let report: TrialReport
        do throws(UsageError) {
            report = try make()
        } catch {
            StandardError.write("portcullis: \(error.message)")
            throw ExitStatus.usage
        }
        StandardOutput.write(text(report.json) + "\n")
        try ExitStatus(isYes: report.status == .accepted).finish()
    }
}
