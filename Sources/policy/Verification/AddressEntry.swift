import Synchronization

/// The place of one client address in an ``AddressTable``, held: it stays that address's until
/// ``release(now:)``, which the holder calls once.
package struct AddressEntry: Sendable {
    let row: AddressTable.Row
    let way: Int

    /// Takes a request's token: `nil`, or the nanoseconds until there is one.
    package func takeRequest(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.take(from: row.slots[way].requests, now: now)
    }

    /// The same for a call of the gateway's own endpoints.
    package func takeCall(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.take(from: row.slots[way].calls, now: now)
    }

    /// A call costs so many tokens more than the one that was taken.
    package func oweCalls(_ count: Int, _ rate: TokenRate, now: UInt64) {
        rate.owe(count, to: row.slots[way].calls, now: now)
    }

    /// Takes a token of the address's share of enrolments: `nil`, or the nanoseconds until there is
    /// one.
    func takeEnrolment(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.take(from: row.slots[way].enrolments, now: now)
    }

    /// The queue of the callers of this address that are over its share.
    func enqueueEnrolment(_ body: (borrowing Atomic<UInt64>) -> UInt64) -> UInt64 {
        body(row.slots[way].enrolmentQueue)
    }

    /// Whether a signature may be verified for this address: `nil`, or the nanoseconds until then.
    package func failureWait(_ rate: TokenRate, now: UInt64) -> UInt64? {
        rate.wait(in: row.slots[way].failures, now: now)
    }

    /// A verification was in vain.
    package func addFailure(_ rate: TokenRate, now: UInt64) {
        _ = rate.take(from: row.slots[way].failures, now: now)
    }

    /// Counts bytes of content that are to be held for this address; `false` when they would be
    /// more than `max`. Give them back with ``giveBack(_:)`` before ``release(now:)``.
    package func take(_ count: Int, max: Int) -> Bool {
        let held = row.slots[way].held.wrappingAdd(count, ordering: .relaxed).newValue
        guard held > max else { return true }
        giveBack(count)
        return false
    }

    /// So many bytes are held no longer.
    package func giveBack(_ count: Int) {
        row.slots[way].held.wrappingSubtract(count, ordering: .relaxed)
    }

    /// Holds the entry once more; `false` when it has as many holders as it may.
    ///
    /// - max: at least 1; `nil` for no limit.
    package func holdAgain(max: Int?) -> Bool { row.holdAgain(way, max: max) }

    /// Holds the entry no longer.
    package func release(now: UInt64) {
        row.slots[way].usedAt.store(now, ordering: .relaxed)
        row.slots[way].holder.wrappingSubtract(1, ordering: .releasing)
    }
}
