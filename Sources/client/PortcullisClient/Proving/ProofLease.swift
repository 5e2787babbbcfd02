/// What a proof keeps from others until the head of its answer has come: the turn of a strict
/// counter, or a place in a session's window. Ends once, at the latest when nobody has it.
final class ProofLease: Sendable {
    private let ending: Guarded<(@Sendable () async -> Void)?>

    init(_ ending: @escaping @Sendable () async -> Void) { self.ending = Guarded(ending) }

    deinit { end() }

    func end() {
        let ending = ending.withLock { ending in
            defer { ending = nil }
            return ending
        }
        guard let ending else { return }
        Task { await ending() }
    }
}
