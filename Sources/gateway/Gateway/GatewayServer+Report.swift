import ConfigurationReading
import Dispatch
import Lanes
import Proxy
import Rules
package import Services

// What the lanes count for reports is collected here, so that it is kept once and not on each lane.
extension GatewayServer {
    /// What was collected, and whether the lanes are being asked.
    struct Reporting {
        /// How often the lanes are asked: the length of a chart's shortest slot.
        static let pace = DispatchTimeInterval.seconds(10)
        /// How long a report waits for lanes that are busy.
        static let patience = DispatchTimeInterval.seconds(2)

        var book: ReportBook
        /// A lane that is stuck is not asked again by the clock before it has answered.
        var isCollecting = false
        /// For charts, the oldest first.
        private(set) var marks: [Report.Mark] = []

        init(startedAtTick: UInt64) {
            book = ReportBook(startedAt: Int64(startedAtTick / 1_000_000_000))
        }

        mutating func add(_ mark: Report.Mark) {
            marks.append(mark)
            if marks.count > Report.Mark.countMax { marks.removeFirst() }
        }
    }

    /// Collects now and then, until the gateway ends.
    func collectReports() {
        dispatchPrecondition(condition: .onQueue(control))
        control.asyncAfter(deadline: .now() + Reporting.pace) { [weak self] in
            guard let self, !isEnding else { return }
            if !reporting.isCollecting {
                reporting.isCollecting = true
                collect { [self] in reporting.isCollecting = false }
            }
            collectReports()
        }
    }

    /// Takes over what the lanes have counted. `done` is called on the control queue after the last
    /// of them; what the others have told is in the book before.
    private func collect(_ done: @escaping () -> Void) {
        let gathering = LaneGathering<Void>(units.count) { [self] _ in
            let ids = Set(configuration.rules.rules.map(\.id))
            reporting.book.tidy(serving: ids, at: reportTick)
            done()
        }
        for unit in units {
            unit.takeReport { [self] entries in
                control.async { [self] in
                    reporting.book.add(entries, at: reportTick)
                    gathering.add(())
                }
            }
        }
    }

    /// The clock of the book, in seconds.
    private var reportTick: Int64 { Int64(MonotonicClock.nanoseconds / 1_000_000_000) }
}

extension GatewayServer: ReportSource {
    package func report(
        of scope: ReportScope,
        _ completion: @escaping @Sendable (Report?) -> Void
    ) {
        let answer = FirstAnswer(completion)
        control.asyncAfter(deadline: .now() + Reporting.patience) { answer.give(nil) }
        control.async { [self] in
            collect { [self] in
                answer.give(
                    Report(
                        reporting.book,
                        ruleFacts,
                        scope,
                        marks: reporting.marks,
                        startedAt: startedAt,
                        now: (wallSeconds, reportTick)
                    )
                )
            }
        }
    }
}
