import Foundation

/// Lets one assertion through at a time, in the order of asking.
///
/// A key's counter grows with each assertion. Where a rule compares counters strictly, no later
/// assertion may be made before the gateway has answered the earlier one.
actor Turnstile {
    private struct Place {
        let number: Int
        let work: SharedWork<Void>
    }

    private let clock: any ClientClock
    private var isTaken = false
    private var waiting: [Place] = []
    private var nextNumber = 0

    init(clock: any ClientClock) { self.clock = clock }

    /// Waits for a turn.
    ///
    /// - Returns: whether it has come, so that ``leave()`` is due. After the time it has not.
    func enter(within seconds: Double) async -> Bool {
        guard isTaken else {
            isTaken = true
            return true
        }
        nextNumber += 1
        let place = Place(number: nextNumber, work: SharedWork())
        waiting.append(place)
        let time = clock.now.addingTimeInterval(seconds)
        if await place.work.value(until: time, by: clock) != nil { return true }
        guard let index = waiting.firstIndex(where: { $0.number == place.number }) else {
            // The turn came in the same moment as the end of the time.
            return true
        }
        waiting.remove(at: index)
        return false
    }

    /// How many wait for a turn.
    var waitingCount: Int { waiting.count }

    /// Ends a turn.
    func leave() {
        guard !waiting.isEmpty else {
            isTaken = false
            return
        }
        waiting.removeFirst().work.end(with: ())
    }
}
