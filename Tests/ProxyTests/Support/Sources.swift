import Services
import Synchronization

/// Answers at once with what it was given.
struct ReadySource: SnapshotSource {
    let snapshot: AdminSnapshot

    func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void) { completion(snapshot) }
}

/// Answers that it takes too long.
struct LateSource: SnapshotSource {
    func ask(_ completion: @escaping @Sendable (AdminSnapshot?) -> Void) { completion(nil) }
}

/// Keeps the completions of its calls, which the test calls.
final class HangingSource: AdminSource {
    let calls = Mutex<[@Sendable (AdminSnapshot) -> Void]>([])

    func gather(_ completion: @escaping @Sendable (AdminSnapshot) -> Void) {
        calls.withLock { $0.append(completion) }
    }
}

extension AdminSnapshot {
    /// One of a gateway without event loops and rules.
    static func sample(
        generation: UInt64 = 1,
        isDegraded: Bool = false,
        drainState: DrainState = .serving,
        lastReloadError: String? = nil
    ) -> AdminSnapshot {
        var snapshot = AdminSnapshot(
            version: "1.2.3",
            configuration: ConfigurationFacts(
                generation: generation,
                lastReloadError: lastReloadError
            ),
            loops: [],
            rules: [],
            store: StoreFacts(keys: 0, revokedKeys: 0, isDegraded: isDegraded)
        )
        snapshot.startedAtSeconds = 1_776_679_200
        snapshot.uptime = .seconds(1)
        snapshot.drainState = drainState
        return snapshot
    }
}
