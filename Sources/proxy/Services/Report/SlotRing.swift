/// A value that can be merged with another one.
package protocol Mergeable: Sendable {
    /// An empty value.
    init()
    mutating func merge(_ other: Self)
}

/// Sums by time slots, for all slots of a window. The caller gives the time, in seconds of a clock
/// that does not go back.
///
/// Empty slots take no memory.
package struct SlotRing<Content: Mergeable>: Sendable {
    /// The sum of a slot.
    package struct Slot: Sendable {
        /// The slot's beginning, divided by its length.
        package let number: Int64
        package fileprivate(set) var content: Content
    }

    package let slotSeconds: Int64
    /// The ended slots that still count. The current slot counts too.
    package let slotsMax: Int64
    /// The oldest first.
    private var slots: [Slot] = []

    package init(slotSeconds: Int64, slotsMax: Int64) {
        precondition(slotSeconds > 0 && slotsMax > 0, "SlotRing: slots have a length")
        self.slotSeconds = slotSeconds
        self.slotsMax = slotsMax
    }

    /// Adds to the slot of a moment. A moment before the newest slot counts as that slot's.
    package mutating func add(_ content: Content, at now: Int64) {
        let number = max(now / slotSeconds, slots.last?.number ?? .min)
        drop(before: number - slotsMax)
        if slots.last?.number != number { slots.append(Slot(number: number, content: Content())) }
        slots[slots.count - 1].content.merge(content)
    }

    private mutating func drop(before number: Int64) {
        let gone = slots.prefix { $0.number < number }.count
        if gone > 0 { slots.removeFirst(gone) }
    }

    /// The slots that count at a moment, the oldest first.
    package func slots(at now: Int64) -> ArraySlice<Slot> {
        let first = now / slotSeconds - slotsMax
        return slots.drop { $0.number < first }
    }

    package func sum(at now: Int64) -> Content {
        var sum = Content()
        for slot in slots(at: now) { sum.merge(slot.content) }
        return sum
    }

    /// The number of seconds that a sum covers, where counting began at `start`.
    package func coverage(at now: Int64, since start: Int64) -> Int64 {
        max(0, now - max(start, (now / slotSeconds - slotsMax) * slotSeconds))
    }
}
