import ConfigurationReading
import Dispatch
import Expectations
import Foundation
import KeyStore
import Testing

@testable import Gateway

extension Scenarios {
    /// What is said of a state that comes and goes.
    struct StateReportTests {
        private static let quiet = StateReport<String?>.quietNanoseconds

        @Test func `that it begins and is over is said at once`() {
            var report = StateReport<String?>(nil)
            expectEqual(report.changed(to: "full", now: 0), .report("full", leftOut: 0))
            expectEqual(report.changed(to: nil, now: 1), .report(nil, leftOut: 0))
            expectEqual(
                report.changed(to: "full", now: 2 + Self.quiet),
                .report("full", leftOut: 0)
            )
        }

        @Test func `a state that alternates is said every ten seconds, with what was left out`() {
            var report = StateReport<String?>(nil)
            _ = report.changed(to: "full", now: 0)
            _ = report.changed(to: nil, now: 0)
            expectEqual(report.changed(to: "full", now: 100), .wait(nanoseconds: Self.quiet - 100))
            for number in 1...50 {
                expectEqual(report.changed(to: number % 2 == 0 ? "full" : nil, now: 200), .none)
            }
            expectEqual(report.waited(now: Self.quiet), .report("full", leftOut: 50))
            expectEqual(report.changed(to: nil, now: Self.quiet + 1), .report(nil, leftOut: 0))
            expectEqual(report.waited(now: Self.quiet * 2), .none)
        }

        @Test func `a store that fails and recovers again and again has few lines in the log`()
            throws
        {
            let gateway = try TestGateway([("shop", ["127.0.0.1:9"])])
            defer { gateway.stop() }
            let (plane, faults) = (gateway.server.plane, gateway.server.faults)
            let file = gateway.folder + "/messages"
            let writer = try LogWriter(file: file, losses: LogLosses())
            let states: [JournalError?] = [JournalError(.full, "no room"), nil]
            let began = ContinuousClock.now
            plane.queue.sync {
                plane.log = MessageStream(writer: writer).logger(.notice)
                for _ in 0..<50 {
                    for state in states {
                        faults.storeChanged(state)
                        faults.storeReadChanged(state)
                    }
                }
            }
            writer.drain(until: .now() + .seconds(60))
            let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
            // After ten seconds there may be one more of each.
            let isLate = began.duration(to: .now) >= .seconds(10)
            let parts = [
                "can't be written, full: no room", "can be written again",
                "can't be read, full: no room", "reads again",
            ]
            for part in parts {
                let count = lines.count { $0.contains(part) }
                #expect(count == 1 || isLate && count > 1, "\(part): \(count)")
            }
        }
    }
}
