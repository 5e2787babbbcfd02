package import DeviceKey

/// Whether the counters of a key are known to be those of its last use.
package enum CounterAnchor: UInt8, Hashable, Sendable {
    /// They are: no assertion was admitted that they don't include.
    case held
    /// They come from an older copy of the store, so assertions that were admitted since look
    /// unused. A use then needs a challenge that was issued after the copy. A device counts upwards
    /// (Apple, "Validating Apps That Connect to Your Server"). So the counter of such an assertion
    /// is above all earlier ones, and the key is held from then on.
    case lost
}

/// Sliding-window bitmap of the used counters of a key: the highest, and the 64 below it.
///
/// It is like the replay window of IPsec (RFC 4303 §3.4.3). It is also kept under the strict rule.
/// So when a rule changes, or two rules differ, a counter that either has admitted stays used.
package struct CounterState: Hashable, Sendable {
    /// Bit i: the counter i + 1 below the highest was used, or may have been.
    package private(set) var seen: UInt64
    /// The highest counter used; that of the attestation, 0, at first.
    package private(set) var highest: SignCounter

    /// - `seen`: the bitmap; `.max` (all used) when the used counters below the highest are not
    ///   known.
    package init(highest: SignCounter = .zero, seen: UInt64 = 0) {
        self.highest = highest
        self.seen = seen
    }

    /// Whether the counter is free under the rule.
    package func admits(_ counter: SignCounter, _ rule: StoreCounterRule) -> Bool {
        guard counter <= highest else { return true }
        switch rule {
        case .strict: return false
        case .window(let width):
            let below = highest.rawValue - counter.rawValue
            guard below >= 1, below <= UInt32(min(max(width, 1), 64)) else { return false }
            return seen >> UInt64(below - 1) & 1 == 0
        }
    }

    /// Marks the counter as used.
    package mutating func use(_ counter: SignCounter) {
        merge(CounterState(highest: counter, seen: 0))
    }

    /// Marks all counters as used that the other state has marked.
    package mutating func merge(_ other: CounterState) {
        if other.highest > highest {
            let own = self
            self = other
            mark(own)
        } else {
            mark(other)
        }
    }

    /// Marks the counters of a state that is not ahead of this one, its highest included.
    private mutating func mark(_ other: CounterState) {
        let below = UInt64(highest.rawValue - other.highest.rawValue)
        // Shifting by 64 and more gives 0: those counters have left the window and stay used.
        seen |= other.seen << below
        if below > 0 { seen |= 1 << (below - 1) }
    }
}
