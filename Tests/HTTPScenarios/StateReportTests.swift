import Testing

@testable import Gateway

extension Scenarios {
    /// What is said of a state that comes and goes.
    struct StateReportTests {
        private static let quiet = StateReport<String?>.quietNanoseconds

        @Test func `that it begins and is over is said at once`() {
            var report = StateReport<String?>(nil)
            #expect(report.changed(to: "full", now: 0) == .report("full", leftOut: 0))
            #expect(report.changed(to: nil, now: 1) == .report(nil, leftOut: 0))
            #expect(
                report.changed(to: "full", now: 2 + Self.quiet) == .report("full", leftOut: 0)
            )
        }

        @Test func `a state that alternates is said every ten seconds, with what was left out`() {
            var report = StateReport<String?>(nil)
            _ = report.changed(to: "full", now: 0)
            _ = report.changed(to: nil, now: 0)
            #expect(report.changed(to: "full", now: 100) == .wait(nanoseconds: Self.quiet - 100))
            for number in 1...50 {
                #expect(report.changed(to: number % 2 == 0 ? "full" : nil, now: 200) == .none)
            }
            #expect(report.waited(now: Self.quiet) == .report("full", leftOut: 50))
            #expect(report.changed(to: nil, now: Self.quiet + 1) == .report(nil, leftOut: 0))
            #expect(report.waited(now: Self.quiet * 2) == .none)
        }
    }
}
