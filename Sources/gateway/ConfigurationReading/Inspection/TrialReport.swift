package import Encodings

// The work of `portcullis verify` and `portcullis inspect`, without the command line.
//
// A trial (`AttestationTrial`, `AssertionTrial`, `ReceiptTrial`, `AndroidTrial`) is made of option
// texts as someone typed them, and throws a `UsageError` for one that cannot be meant. It then
// judges one object and gives a `TrialReport`: one JSON object and an exit status. Judging is
// AppAttest's and KeyAttestation's; nothing is decided here but what a receipt's expiration means.
//
// A description (`ObjectDescription`) shows the contents of an object and judges nothing.
//
// Objects come in files, raw or in base64: see `ObjectFile`, the only code here that reads any. No
// code here reads the clock: times are options, and the caller gives the time for the word `now`.

/// Why a command line can't be used: the option, the finding, and the next step.
package struct UsageError: Error, Hashable, Sendable {
    /// The option or argument, as it is written.
    package let place: String
    /// The finding, and a valid input.
    package let text: String

    package init(_ place: String, _ text: String) {
        self.place = place
        self.text = text
    }

    /// The message for people, on one line.
    package var message: String { "\(place): \(text)" }
}

/// The answer of `verify` and `inspect`: the output and the exit status.
package struct TrialReport: Hashable, Sendable {
    /// The exit status. Wrong usage, status 2, is a ``UsageError`` and no report.
    package enum Status: Int32, Sendable {
        case accepted = 0
        case refused = 1
    }

    package let status: Status
    package let json: JSONValue

    /// The facts of an object that was accepted, or only described.
    static func accepted(_ facts: [JSONValue.Member]) -> TrialReport {
        TrialReport(status: .accepted, json: .object([.init("verdict", .string("accept"))] + facts))
    }

    /// Why an object was refused.
    static func refused(_ reason: String, _ detail: String) -> TrialReport {
        TrialReport(
            status: .refused,
            json: .object([
                .init("verdict", .string("refuse")), .init("reason", .string(reason)),
                .init("detail", .string(detail)),
            ])
        )
    }

    /// The report with a further member at the end.
    func adding(_ name: String, _ value: JSONValue) -> TrialReport { adding([.init(name, value)]) }

    /// The same with these members at the end.
    func adding(_ more: [JSONValue.Member]) -> TrialReport {
        guard case .object(let members) = json else { return self }
        return TrialReport(status: status, json: .object(members + more))
    }
}
