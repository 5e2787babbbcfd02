import Encodings
import HTTPWire
package import Verification

/// A number of requests that have a verdict in common.
package protocol CountedVerdicts {
    var outcome: Verdict.Outcome { get }
    var count: UInt64 { get }
    /// Those of them that were really refused.
    var refused: UInt64 { get }
}

extension Sequence where Element: CountedVerdicts {
    var total: UInt64 { reduce(0) { $0 &+ $1.count } }

    var refused: UInt64 { reduce(0) { $0 &+ $1.refused } }

    subscript(_ kind: VerdictClass) -> UInt64 {
        reduce(0) { VerdictClass($1.outcome) == kind ? $0 &+ $1.count : $0 }
    }

    /// The requests without a pass, by reason, the most frequent first.
    var reasons: [(reason: String, count: UInt64)] {
        var counts: [String: UInt64] = [:]
        for cell in self where cell.outcome != .pass {
            counts[cell.outcome.reason, default: 0] &+= cell.count
        }
        return counts.map { ($0.key, $0.value) }.sorted { ($1.1, $0.0) < ($0.1, $1.0) }
    }
}

/// The verdicts of one rule's requests by the system that their clients claim, in some span of
/// time.
///
/// Less than 8 KiB: ``placesMax`` and ``cellsMax`` limit what clients can make it distinguish.
package struct SystemCounts: Sendable {
    /// The systems that are distinguished; the rest is ``Name/other``. Requests that no key has
    /// signed take half of the places at most, so that strangers don't displace the others.
    package static let placesMax = 48
    /// The most combinations of system and verdict. Beyond it, systems are no longer distinguished.
    package static let cellsMax = 256

    /// What a group of requests has in common.
    enum Name: Hashable, Sendable {
        case claimed(ClaimedSystem)
        /// All systems that are not counted apart.
        case other
        /// The client names none.
        case none

        init(_ system: ClaimedSystem?) { self = system.map(Name.claimed) ?? .none }

        var text: String {
            switch self {
            case .claimed(let system): system.text
            case .other: "other"
            case .none: "not known"
            }
        }
    }

    private struct Place {
        let name: Name
        /// Whether a key has signed a request that names it.
        var isSigned: Bool
    }

    /// The count of requests of a system with one verdict.
    struct Cell: CountedVerdicts, Sendable {
        fileprivate let place: UInt8
        let outcome: Verdict.Outcome
        fileprivate(set) var count: UInt64
        fileprivate(set) var refused: UInt64
    }

    private var places: [Place] = []
    private(set) var cells: [Cell] = []

    package init() {}

    /// The requests by system.
    var groups: [(name: Name, cells: [Cell])] {
        places.enumerated().map { number, place in
            (place.name, cells.filter { Int($0.place) == number })
        }
    }

    mutating func add(_ request: ReportedRequest) {
        let place = place(of: Name(request.system), isSigned: request.isSigned)
        add(
            Cell(
                place: place,
                outcome: request.outcome,
                count: 1,
                refused: request.isRefused ? 1 : 0
            )
        )
    }

    private mutating func add(_ cell: Cell) {
        if merge(cell) { return }
        guard cells.count >= Self.cellsMax, let other = append(.other, isSigned: false) else {
            return cells.append(cell)
        }
        let rest = Cell(
            place: other,
            outcome: cell.outcome,
            count: cell.count,
            refused: cell.refused
        )
        if !merge(rest) { cells.append(rest) }
    }

    /// - Returns: whether there is such a cell. A found cell moves up by one place, so that
    ///   frequent cells are found first.
    private mutating func merge(_ cell: Cell) -> Bool {
        for index in cells.indices
        where cells[index].place == cell.place && cells[index].outcome == cell.outcome {
            cells[index].count &+= cell.count
            cells[index].refused &+= cell.refused
            if index > 0 { cells.swapAt(index, index - 1) }
            return true
        }
        return false
    }

    private mutating func place(of name: Name, isSigned: Bool) -> UInt8 {
        if let place = append(name, isSigned: isSigned) { return place }
        // There is always room for it: two places more than for systems.
        return append(.other, isSigned: false) ?? 0
    }

    /// The place of a name, also a new one; `nil` where it gets none.
    private mutating func append(_ name: Name, isSigned: Bool) -> UInt8? {
        var unsigned = 0
        for place in places.indices {
            if places[place].name == name {
                if isSigned { places[place].isSigned = true }
                return UInt8(truncatingIfNeeded: place)
            }
            if case .claimed = places[place].name, !places[place].isSigned { unsigned += 1 }
        }
        if case .claimed = name {
            let isFull = isSigned ? places.count >= Self.placesMax : unsigned >= Self.placesMax / 2
            guard !isFull, places.count < Self.placesMax else { return nil }
        }
        places.append(Place(name: name, isSigned: isSigned))
        return UInt8(truncatingIfNeeded: places.count - 1)
    }
}

extension SystemCounts: Mergeable {
    package mutating func merge(_ other: SystemCounts) {
        for cell in other.cells {
            let place = other.places[Int(cell.place)]
            add(
                Cell(
                    place: self.place(of: place.name, isSigned: place.isSigned),
                    outcome: cell.outcome,
                    count: cell.count,
                    refused: cell.refused
                )
            )
        }
    }
}

// What gateways that share a database tell each other. Another form needs another
// ``Report/form``.
extension SystemCounts {
    func write(into out: inout ByteWriter) {
        out.short(UInt64(places.count))
        for place in places {
            out.flag(place.isSigned)
            place.name.write(into: &out)
        }
        out.short(UInt64(cells.count))
        for cell in cells {
            out.byte(cell.place)
            cell.outcome.write(into: &out)
            out.short(cell.count)
            out.short(cell.refused)
        }
    }

    init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        var told: [Place] = []
        for _ in 0..<(try reader.short(max: UInt64(UInt8.max))) {
            let isSigned = try reader.flag()
            told.append(Place(name: try Name(&reader), isSigned: isSigned))
        }
        for _ in 0..<(try reader.short(max: UInt64(Self.cellsMax) * 4)) {
            let number = Int(try reader.byte())
            guard told.indices.contains(number) else { throw ByteReader.Fault() }
            let place = place(of: told[number].name, isSigned: told[number].isSigned)
            let outcome = try Verdict.Outcome(&reader)
            let count = try reader.count()
            add(Cell(place: place, outcome: outcome, count: count, refused: try reader.count()))
        }
    }
}

extension SystemCounts.Name {
    fileprivate func write(into out: inout ByteWriter) {
        switch self {
        case .none: out.byte(0)
        case .other: out.byte(1)
        case .claimed(let system):
            out.byte(2)
            out.text(system.name.rawValue)
            out.short(UInt64(system.major))
            out.flag(system.minor != nil)
            if let minor = system.minor { out.short(UInt64(minor)) }
        }
    }

    /// A system that this version does not know counts as other.
    fileprivate init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        switch try reader.byte() {
        case 0: self = .none
        case 1: self = .other
        case 2:
            let name = ClaimedSystem.Name(rawValue: try reader.text(max: 32))
            let major = UInt16(try reader.short(max: UInt64(UInt16.max)))
            let hasMinor = try reader.flag()
            let minor = hasMinor ? UInt16(try reader.short(max: UInt64(UInt16.max))) : nil
            self = name.map { .claimed(ClaimedSystem($0, major: major, minor: minor)) } ?? .other
        default: throw ByteReader.Fault()
        }
    }
}
