import Synchronization
import TestSupport

/// Decides what becomes of commits and messages, in their order.
final class SimulatedFates: Sendable {
    private let dice: Mutex<SeededGenerator>
    private let isCalm = Atomic(true)
    private let lies: Bool

    init(seed: UInt64, lies: Bool) {
        dice = Mutex(SeededGenerator(seed: seed))
        self.lies = lies
    }

    /// While the world is calm everything works.
    func calm(_ isCalm: Bool) { self.isCalm.store(isCalm, ordering: .sequentiallyConsistent) }

    /// 0..<100; `nil` while the world is calm.
    private var number: Int? {
        guard !isCalm.load(ordering: .sequentiallyConsistent) else { return nil }
        return dice.withLock { Int.random(in: 0..<100, using: &$0) }
    }

    var ofCommit: CommitFate {
        switch number ?? 99 {
        case 0..<50 where lies: .lies
        case 0..<4: .failsBefore
        case 4..<8: .failsAfter
        case 8..<10: .endsBefore
        case 10..<12: .endsAfter
        default: .works
        }
    }

    var ofMessage: SimulatedLine.Fate {
        switch number ?? 99 {
        case 0..<2: .endsBefore
        case 2..<4: .endsAfter
        default: .arrives
        }
    }
}
