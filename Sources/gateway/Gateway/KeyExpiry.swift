import ConfigurationReading
import Dispatch
import KeyCatalog
import PostgreSQLKeyStore
import Synchronization

/// Deletes keys that were not used for long, piece by piece, on a queue of its own.
///
/// A run deletes a twentieth of the keys, or a thousand, and then ends with its piece: a clock that
/// is wrong by years can't empty the store in a day.
final class KeyExpiry: Sendable {
    /// From one run to the next.
    static let interval = DispatchTimeInterval.seconds(86_400)
    private static let countMin = 1_000
    private static let shareOfKeys = 20

    /// A little less than ``interval``, so that nobody waits for two.
    private static let leaseSeconds: Int64 = 86_000

    private let queue = DispatchQueue(label: "portcullis.expiry")
    private let holder = Int64.random(in: 1...Int64.max)
    private let deleted = Atomic<UInt64>(0)

    /// Keys that were deleted since the start.
    var deletedCount: UInt64 { deleted.load(ordering: .relaxed) }

    /// Looks through the whole store, beside the gateway's own work.
    ///
    /// - before: second of Unix time; keys that were enrolled and last used earlier go.
    /// - completion: called on the queue, with how many were deleted.
    func run(
        _ store: StorePlace,
        before second: Int64,
        _ note: ChangeNote,
        completion: @escaping @Sendable (Result<Int, StoreProblem>) -> Void
    ) {
        queue.async { [self] in
            completion(
                Result { () throws(StoreProblem) in
                    guard let keys = try store.archive() else { return 0 }
                    // Of the gateways that share a database one does it.
                    if let shared = keys as? PostgreSQLKeyArchive,
                        try !shared.lease("expiry", to: holder, seconds: Self.leaseSeconds)
                    {
                        return 0
                    }
                    let most = max(Self.countMin, try keys.count() / Self.shareOfKeys)
                    let count = try keys.expireAll(unusedSince: second, atMost: most, note)
                    deleted.add(UInt64(count), ordering: .relaxed)
                    try keys.close()
                    return count
                }
            )
        }
    }
}
