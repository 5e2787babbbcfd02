/// Which counters are admitted after the highest one seen.
package enum StoreCounterRule: Hashable, Sendable {
    /// Greater than all before.
    case strict
    /// Greater, or unseen and at most so far below the highest. Taken as 1…64.
    case window(Int)
}
