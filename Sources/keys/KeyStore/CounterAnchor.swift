/// Whether the counters of a key are known to be those of its last use.
package enum CounterAnchor: UInt8, Hashable, Sendable {
    /// They are: nothing was admitted that they don't know.
    case held
    /// They come from an older copy of the store, so assertions that were admitted since look
    /// unused. A use then needs a challenge, which was issued behind the copy. A device counts
    /// upwards (Apple, "Validating Apps That Connect to Your Server"), so the counter of such an
    /// assertion is above all that were signed before, and the key is held from then on.
    case lost
}
