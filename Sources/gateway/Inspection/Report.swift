package import JSONText

/// The answer of `verify` and `inspect`: what to print and how to exit.
package struct Report: Hashable, Sendable {
    /// The exit status. Wrong usage, status 2, is a ``UsageError`` and no report.
    package enum Status: Int32, Sendable {
        case accepted = 0
        case refused = 1
    }

    package let status: Status
    package let json: JSONValue

    /// What an object that was accepted, or only looked at, says.
    static func accepted(_ facts: [JSONValue.Member]) -> Report {
        Report(status: .accepted, json: .object([.init("verdict", .string("accept"))] + facts))
    }

    /// Why an object was refused.
    static func refused(_ reason: String, _ detail: String) -> Report {
        Report(
            status: .refused,
            json: .object([
                .init("verdict", .string("refuse")), .init("reason", .string(reason)),
                .init("detail", .string(detail)),
            ])
        )
    }

    /// The same with more at the end.
    func adding(_ name: String, _ value: JSONValue) -> Report {
        guard case .object(let members) = json else { return self }
        return Report(status: status, json: .object(members + [.init(name, value)]))
    }
}
