import ConfigurationReading
import Dispatch
import Glibc
import KeyStore
import Logging
import PostgreSQLKeyStore
import Synchronization
import Tokens

/// Periodic work on the store: deleting keys that were not used for long (`store.expire_unused`),
/// and reading the secrets that all gateways of a database share.
final class StoreUpkeep: Sendable {
    /// Often enough to have a new secret before any gateway signs with it.
    private static let secretsInterval = DispatchTimeInterval.seconds(10)

    private let plane: ControlPlane
    private let decider: Decider
    private let expiry = KeyExpiry()
    private let secrets = DispatchQueue(label: "portcullis.secrets", qos: .utility)

    init(_ plane: ControlPlane, _ decider: Decider) {
        (self.plane, self.decider) = (plane, decider)
    }

    /// Keys that were deleted since the start.
    var expiredCount: UInt64 { expiry.deletedCount }

    func start() {
        expireKeys()
        guard case .postgresql = plane.configuration.store else { return }
        // A start without the database has no secrets.
        readSecrets(in: .seconds(1))
    }

    /// Runs once at the start, then once a day, by the current configuration.
    private func expireKeys() {
        guard !plane.isEnding else { return }
        plane.perform(after: KeyExpiry.interval) { [self] in expireKeys() }
        let age = plane.configuration.keeping.expireUnused
        // A file needs no such run: its deleted keys are erased at the start.
        var isShared = false
        if case .postgresql = plane.configuration.store { isShared = true }
        guard age != nil || isShared else { return }
        let note = ChangeNote(now: plane.wallSeconds, by: "portcullis", why: "store.expire_unused")
        expiry.run(plane.configuration.store, before: age.map { note.now - $0.seconds }, note) {
            [self] result in
            plane.perform { self.report(result, age) }
        }
    }

    private func report(_ result: Result<Int, StoreProblem>, _ age: KeyAge?) {
        switch result {
        case .success(0): break
        case .success(let count):
            guard let age else { return }
            plane.log.notice(
                "keys deleted that were not used for \(age.seconds / 86_400) days: \(count)"
            )
        case .failure(let problem):
            guard age != nil else {
                // A store that is away has been reported, and no key was to be deleted.
                let keys = decider.keys
                guard keys.readFault == nil, !keys.committer.isDegraded else { return }
                return plane.log.error(
                    "deleted keys could not be erased, \(problem); it is tried again in a day"
                )
            }
            plane.log.error(
                """
                unused keys could not be deleted, or deleted ones not erased, \(problem); it is \
                tried again in a day
                """
            )
        }
    }

    private func readSecrets(in interval: DispatchTimeInterval) {
        let lifetime = plane.configuration.challenges.lifetimeMax
        secrets.asyncAfter(deadline: .now() + interval) { [weak self] in
            guard let self else { return }
            // A store that can't be read is reported where its changes are read. Until then the
            // known secrets stay in use.
            let now = Int64(time(nil))
            let found = try? decider.keys.sharedSecrets(now: now, lifetime: lifetime)
            decider.challenges.take(found.flatMap(\.self) ?? [])
            plane.perform { [self] in
                guard !plane.isEnding else { return }
                readSecrets(in: found == nil ? .seconds(1) : Self.secretsInterval)
            }
        }
    }
}

/// Deletes keys that were not used for long, piece by piece, on a queue of its own.
///
/// A run ends with the piece in which it has deleted a twentieth of the keys, or a thousand. So a
/// clock that is wrong by years can't empty the store in a day.
private final class KeyExpiry: Sendable {
    /// The time from one run to the next.
    static let interval = DispatchTimeInterval.seconds(86_400)
    private static let countMin = 1_000
    private static let shareOfKeys = 20

    /// A little less than ``interval``, so that no gateway has to wait for two intervals.
    private static let leaseSeconds: Int64 = 86_000

    private let queue = DispatchQueue(label: "portcullis.expiry")
    private let holder = Int64.random(in: 1...Int64.max)
    private let deleted = Atomic<UInt64>(0)

    /// Keys that were deleted since the start.
    var deletedCount: UInt64 { deleted.load(ordering: .relaxed) }

    /// Scans the whole store, beside the gateway's own work.
    ///
    /// It erases all deleted keys too: a command may have been killed before it did.
    ///
    /// - before: second of Unix time; keys that were enrolled and last used earlier are deleted.
    ///   `nil` for none.
    /// - completion: called on the queue, with the number of deleted keys.
    func run(
        _ store: StorePlace,
        before second: Int64?,
        _ note: ChangeNote,
        completion: @escaping @Sendable (Result<Int, StoreProblem>) -> Void
    ) {
        queue.async { [self] in
            completion(
                Result { () throws(StoreProblem) in
                    guard let keys = try store.archive() else { return 0 }
                    // One of the gateways that share a database does it.
                    if let shared = keys as? PostgreSQLKeyArchive,
                        try !shared.lease("expiry", to: holder, seconds: Self.leaseSeconds)
                    {
                        return 0
                    }
                    var count = 0
                    if let second {
                        let most = max(Self.countMin, try keys.count() / Self.shareOfKeys)
                        count = try keys.expireAll(unusedSince: second, atMost: most, note)
                        deleted.add(UInt64(count), ordering: .relaxed)
                    }
                    _ = try keys.eraseDeleted()
                    try keys.close()
                    return count
                }
            )
        }
    }
}
