import Encodings
import Expectations
import Testing

@testable import ConfigurationReading

/// The options of a trial.
protocol TrialOptions {
    func report(on bytes: [UInt8]) throws -> TrialReport
}

extension TrialOptions {
    /// The reason of the refusal with some options changed; `nil` when the trial accepts.
    func reason(
        on bytes: [UInt8],
        _ change: (inout Self) -> Void = { _ in }
    ) throws -> JSONValue? {
        var other = self
        change(&other)
        let report = try other.report(on: bytes)
        expectEqual((report.status == .accepted), report.json["verdict"] == .string("accept"))
        return report.json["reason"]
    }
}
