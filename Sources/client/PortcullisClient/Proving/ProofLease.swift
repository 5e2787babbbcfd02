import Foundation

/// What a proof keeps from others until the head of its answer has come: the turn of a strict
/// counter, or a place in a session's window. Ends once: when it is told to, when its time is over,
/// at the latest when nobody has it.
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
