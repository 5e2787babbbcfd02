/// Which counters of a key are admitted after the highest one seen.
package enum CounterRule: Hashable, Sendable {
    /// Greater than all before: a client must send one request at a time.
    case strict
    /// Greater, or unseen and at most this far below the highest (1…64), each once.
    ///
    /// For apps that send requests concurrently, which then arrive out of order.
    case window(Int)

    /// The widths a window may have.
    package static let windowRange = 1...64
}
