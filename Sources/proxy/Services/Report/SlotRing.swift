/// Something of which two can be added up.
package protocol Mergeable: Sendable {
    /// Nothing was added.
    init()
    mutating func merge(_ other: Self)
}

/// Sums by slots of time, for as many slots as a window has. Time is given by the caller, in
/// seconds of a clock that does not go back.
///
/// Slots in which nothing was added take no room.
package struct SlotRing<Content: Mergeable>: Sendable {
    /// What was added in a slot.
    package struct Slot: Sendable {
        /// The slot's beginning, divided by its length.
        package let number: Int64
        package fileprivate(set) var content: Content
    }

    package let slotSeconds: Int64
    /// Slots that have ended and still count. The one that has not ended counts beside them.
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

    /// The sum of what counts at a moment.
    package func sum(at now: Int64) -> Content {
        var sum = Content()
        for slot in slots(at: now) { sum.merge(slot.content) }
        return sum
    }

    /// How many seconds a sum covers, where counting began at `start`.
    package func coverage(at now: Int64, since start: Int64) -> Int64 {
        max(0, now - max(start, (now / slotSeconds - slotsMax) * slotSeconds))
    }
}
