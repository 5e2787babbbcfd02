import HTTPWire

/// The last refusals of an event loop, in bounded memory.
///
/// Each address has its own share, so no client can make the gateway forget the refusals of all
/// others. Adding scans a table of a few KiB, and allocates nothing once it is full.
package struct RecentRefusals: Sendable {
    /// The most refusals that are kept.
    package static let notesMax = 512
    /// The most of one IPv4 address, or of one IPv6 network of 64 bits.
    package static let ofAddressMax = 32

    /// The note's owner, and its place in the order of all.
    private struct Mark {
        let owner: UInt64
        let number: UInt64
    }

    private var notes: [RefusalNote] = []
    private var marks: [Mark] = []
    private var number: UInt64 = 0

    package init() {}

    package var count: Int { notes.count }

    package mutating func add(_ note: RefusalNote) {
        number &+= 1
        let mark = Mark(owner: note.client.network, number: number)
        guard let place = placeToReplace(for: mark.owner) else {
            notes.append(note)
            marks.append(mark)
            return
        }
        notes[place] = note
        marks[place] = mark
    }

    /// The refusals that match a name, or all, in no order.
    package func notes(named name: RefusalName?) -> [RefusalNote] {
        name.map { notes.filter($0.names) } ?? notes
    }

    /// The oldest note of an address that has its full share, or of all when the memory is full;
    /// `nil` where there is room.
    private func placeToReplace(for owner: UInt64) -> Int? {
        var (oldest, oldestOwn): (Int?, Int?) = (nil, nil)
        var own = 0
        for place in marks.indices {
            let mark = marks[place]
            if oldest.map({ mark.number < marks[$0].number }) ?? true { oldest = place }
            guard mark.owner == owner else { continue }
            own += 1
            if oldestOwn.map({ mark.number < marks[$0].number }) ?? true { oldestOwn = place }
        }
        if own >= Self.ofAddressMax { return oldestOwn }
        return notes.count < Self.notesMax ? nil : oldest
    }
}

/// The refusals that an event loop keeps. Observed ones are kept apart: while a rule observes, they
/// may be most of the traffic.
package struct RefusalMemory: Sendable {
    package private(set) var answered = RecentRefusals()
    package private(set) var forwarded = RecentRefusals()

    package init() {}

    package mutating func add(_ note: RefusalNote) {
        switch note.fate {
        case .answered, .cutOff: answered.add(note)
        case .forwarded: forwarded.add(note)
        }
    }

    /// The refusals that match a name, or all, in no order.
    package func notes(named name: RefusalName?) -> [RefusalNote] {
        answered.notes(named: name) + forwarded.notes(named: name)
    }
}
