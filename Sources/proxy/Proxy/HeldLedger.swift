import Cryptography
import Synchronization
import Verification

/// How much content is held, in all lanes together: in memory and in files; and how much of
/// responses waits for HTTP/2 clients.
///
/// Held bytes are taken before they are written and given back when memory and file are gone.
/// Counts may run over for the moment in which one that is too many is taken back; another lane's
/// bytes may be refused then, never too many be held.
package final class HeldLedger: Sendable {
    private let inMemory = Atomic<Int>(0)
    private let onDisk = Atomic<Int>(0)
    private let unsent = Atomic<Int>(0)
    private let lanes = Atomic<Int>(0)
    /// What each key holds: places for 4,096 keys that hold content at once. Of a key that finds
    /// none the address and the total alone are bounded.
    let keys = AddressTable(capacity: 4_096, key: (RandomOctets.word(), RandomOctets.word()))

    package init() {}

    /// Bytes that are held in memory now.
    package var memoryBytes: Int { inMemory.load(ordering: .relaxed) }
    /// Bytes that are held in files now.
    package var diskBytes: Int { onDisk.load(ordering: .relaxed) }

    /// Bytes of responses that wait for HTTP/2 clients now.
    package var unsentBytes: Int { unsent.load(ordering: .relaxed) }

    /// So many more bytes of responses wait, or fewer.
    func countUnsent(_ change: Int) { unsent.wrappingAdd(change, ordering: .relaxed) }

    /// One more lane uses the ledger.
    func addLane() { lanes.wrappingAdd(1, ordering: .relaxed) }

    /// What each lane may have of a limit for all lanes together.
    func share(of max: Int) -> Int { max / Swift.max(lanes.load(ordering: .relaxed), 1) }

    /// Takes memory; `false` when there would be more than `max` bytes of it.
    func takeMemory(_ count: Int, max: Int) -> Bool {
        guard inMemory.wrappingAdd(count, ordering: .relaxed).newValue > max else { return true }
        giveBackMemory(count)
        return false
    }

    /// Takes room in files; `false` when there would be more than `max` bytes of it.
    func takeDisk(_ count: Int, max: Int) -> Bool {
        guard onDisk.wrappingAdd(count, ordering: .relaxed).newValue > max else { return true }
        giveBackDisk(count)
        return false
    }

    func giveBackMemory(_ count: Int) { inMemory.wrappingSubtract(count, ordering: .relaxed) }

    func giveBackDisk(_ count: Int) { onDisk.wrappingSubtract(count, ordering: .relaxed) }
}
