import ConfigurationReading
import Dispatch
import EventLoops
import Proxy
import Rules
import Services

/// The counts of the event loops for reports, collected so that they are kept once and not on each
/// event loop; and the refusals that they keep.
final class Reporting: Sendable {
    /// The interval of asking the event loops: the length of a chart's shortest slot.
    private static let pace = DispatchTimeInterval.seconds(10)
    /// The longest wait of an answer for busy event loops.
    private static let patience = DispatchTimeInterval.seconds(2)

    private struct State {
        var ledger: ReportLedger
        /// A blocked event loop is not asked again by the timer before it has answered.
        var isCollecting = false
        /// For charts, the oldest first.
        var marks: [Report.Mark] = []
        var ruleFacts: @Sendable () -> [RuleFacts] = { [] }
    }

    private let plane: ControlPlane
    private let state: QueueBound<State>

    init(_ plane: ControlPlane) {
        self.plane = plane
        let second = Int64(plane.startedAtTick / 1_000_000_000)
        state = QueueBound(State(ledger: ReportLedger(startedAt: second)), on: plane.queue)
    }

    /// Collects periodically, until the gateway ends.
    func start(ruleFacts: @escaping @Sendable () -> [RuleFacts]) {
        state.value.ruleFacts = ruleFacts
        collectLater()
    }

    func add(_ mark: Report.Mark) {
        state.value.marks.append(mark)
        if state.value.marks.count > Report.Mark.countMax { state.value.marks.removeFirst() }
    }

    private func collectLater() {
        plane.perform(after: Self.pace) { [weak self] in
            guard let self, !plane.isEnding else { return }
            if !state.value.isCollecting {
                state.value.isCollecting = true
                collect { [self] in state.value.isCollecting = false }
            }
            collectLater()
        }
    }

    /// Collects the counts of the event loops. `done` is called on the control queue after the last
    /// one; then the ledger has all counts.
    private func collect(_ done: @escaping @Sendable () -> Void) {
        plane.gather(LoopUnit.takeReport) { [self] entries in
            state.value.ledger.add(entries, at: tick)
        } _: { [self] _ in
            let ids = Set(plane.configuration.rules.rules.map(\.id))
            state.value.ledger.tidy(serving: ids, at: tick)
            done()
        }
    }

    /// The clock of the ledger, in seconds.
    private var tick: Int64 { ControlPlane.monotonicSeconds }
}

extension Reporting: ReportSource {
    package func report(
        of scope: ReportScope,
        _ completion: @escaping @Sendable (Report?) -> Void
    ) {
        let answer = FirstAnswer(completion)
        plane.perform(after: Self.patience) { answer.give(nil) }
        plane.perform { [self] in
            collect { [self] in
                answer.give(
                    Report(
                        state.value.ledger,
                        of: state.value.ruleFacts(),
                        scope,
                        marks: state.value.marks,
                        at: (plane.startedAt, plane.wallSeconds, tick)
                    )
                )
            }
        }
    }
}

extension Reporting {
    /// The refusals of this gateway that a name matches, or all; `nil` where event loops are too
    /// busy.
    func refusals(
        named name: RefusalName?,
        _ completion: @escaping @Sendable ([RefusalNote]?) -> Void
    ) {
        let answer = FirstAnswer(completion)
        plane.perform(after: Self.patience) { answer.give(nil) }
        // Searched here: an event loop only hands over a copy, and then serves its clients.
        plane.perform { [self] in
            plane.gather(LoopUnit.refusals) { memories in
                answer.give(memories.flatMap { $0.notes(named: name) })
            }
        }
    }
}

extension Reporting: RefusalSource {
    package func refusals(
        named name: RefusalName?,
        at gateway: String?,
        _ completion: @escaping @Sendable (ToldRefusals?) -> Void
    ) {
        refusals(named: name) { completion($0.map { ToldRefusals($0, named: name) }) }
    }
}
