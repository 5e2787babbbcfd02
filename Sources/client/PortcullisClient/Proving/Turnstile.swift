import Foundation

/// Lets one assertion through at a time, in the order of asking.
///
/// A key's counter grows with each assertion. Where a rule compares counters strictly, no later
/// assertion may be made before the gateway has judged the earlier one.
actor Turnstile {
    /// Which turn it is.
    typealias Turn = Int

    private struct Place {
        let turn: Turn
        let work: SharedWork<Void>
    }

    private let clock: any ClientClock
    private var current: Turn?
    private var waiting: [Place] = []
    private var last: Turn = 0

    init(clock: any ClientClock) { self.clock = clock }

    /// Waits for a turn.
    ///
    /// - Returns: the turn, which ``leave(_:)`` ends; `nil` when it has not come in time.
    func enter(within seconds: Double) async -> Turn? {
        last += 1
        let turn = last
        guard current != nil else {
            current = turn
            return turn
        }
        let place = Place(turn: turn, work: SharedWork())
        waiting.append(place)
        let time = clock.now.addingTimeInterval(seconds)
        if await place.work.value(until: time, by: clock) != nil { return turn }
        // The turn came in the same moment as the end of the time.
        if current == turn { return turn }
        waiting.removeAll { $0.turn == turn }
        return nil
    }

    /// How many wait for a turn.
    var waitingCount: Int { waiting.count }

    /// Ends a turn. A turn that has ended already ends no other.
    func leave(_ turn: Turn) {
        guard current == turn else { return }
        current = nil
        guard !waiting.isEmpty else { return }
        let next = waiting.removeFirst()
        current = next.turn
        next.work.end(with: ())
    }
}

/// What a proof keeps from others until the head of its answer has come: the turn of a strict
/// counter, or a place in a session's window. Ends once: by a call, when its time is over,
/// at the latest with its last owner.
final class ProofLease: Sendable {
    private let ending: Guarded<(@Sendable () async -> Void)?>
    private let alarm: Guarded<Task<Void, Never>?> = Guarded(nil)

    init(_ ending: @escaping @Sendable () async -> Void) { self.ending = Guarded(ending) }

    /// A lease that ends by itself after some seconds.
    convenience init(
        atMost seconds: Double,
        by clock: any ClientClock,
        _ ending: @escaping @Sendable () async -> Void
    ) {
        self.init(ending)
        let time = clock.now.addingTimeInterval(seconds)
        let task = Task { [weak self] in
            guard (try? await clock.wait(until: time)) != nil else { return }
            self?.end()
        }
        alarm.withLock { $0 = task }
    }

    deinit { end() }

    func end() {
        alarm.withLock { $0 }?.cancel()
        let ending = ending.withLock { ending in
            defer { ending = nil }
            return ending
        }
        guard let ending else { return }
        Task { await ending() }
    }
}
