import HTTPWire

/// Finds the first rule for a request by following its path through a tree, once for each kind of
/// host pattern that can meet its host.
///
/// The tree is flat: nodes, entries, labels and a hash table of edges, each in one array, so that
/// a look-up allocates nothing and counts no reference. A node is a place in a pattern; its edges
/// are the literal segments that go on from there. Hosts are edges too, from two nodes that exist
/// for them.
///
/// A look-up visits at most the nodes whose patterns meet the path, and of those only the ones
/// that hold a rule earlier than the best so far. The hash table is filled from the rules alone;
/// what strangers send is looked up and never inserted.
struct RouteIndex: Sendable {
    struct Node: Sendable {
        /// The lowest rule number in this node and all below; a look-up skips what can't win.
        var least = Int32.max
        /// The node behind `*`, or -1.
        var one: Int32 = -1
        /// Rules whose pattern ends here, and rules whose `**` stands here: ranges of `entries`.
        var ends: Range<Int32> = 0..<0
        var rests: Range<Int32> = 0..<0
    }

    struct Entry: Sendable {
        let rule: Int32
        let methods: UInt64
    }

    struct Edge: Sendable {
        let from: Int32
        let hash: UInt32
        let label: Range<Int32>
        let to: Int32
    }

    static let exactHosts: Int32 = 0
    static let hostSuffixes: Int32 = 1
    static let anyHost: Int32 = 2
    /// The bit of every method that no rule names.
    private static let otherMethod: UInt64 = 1 << 63
    /// The most method names that all rules may name together.
    static let methodsMax = 63

    var nodes: [Node] = []
    var entries: [Entry] = []
    var labels: [UInt8] = []
    /// Open addressing, a power of two, at most half full; `nil` is a free place.
    var edges: [Edge?] = []
    var methodNames: [UInt8] = []
    var methodRanges: [Range<Int>] = []
    var hasHostSuffixes = false

    /// The lowest number of a match that the request meets, or `nil`.
    func first(
        method: Span<UInt8>,
        host: Span<UInt8>,
        view: borrowing TargetView,
        _ reading: TargetView.Reading
    ) -> Int? {
        var search = Search(methods: bit(of: method), reading: reading)
        visit(Self.anyHost, view, at: 0, &search)
        visitHosts(host, view, &search)
        return search.best == .max ? nil : Int(search.best)
    }

    private struct Search {
        let methods: UInt64
        let reading: TargetView.Reading
        var best = Int32.max
    }

    /// Visits the trees of the host itself and of all `*.` patterns above it.
    ///
    /// The hash runs from the host's last octet to its first, so that one pass has the hash of
    /// every suffix on its way.
    private func visitHosts(
        _ host: Span<UInt8>,
        _ view: borrowing TargetView,
        _ search: inout Search
    ) {
        let end = HostPattern.end(of: host)
        var hash = SegmentHash()
        var index = end
        while index > 0 {
            index -= 1
            if hasHostSuffixes, index > 0, index < end - 1, host[index] == UInt8(ascii: ".") {
                let suffix = hostEdge(Self.hostSuffixes, hash, host, from: index + 1, to: end)
                visit(suffix, view, at: 0, &search)
            }
            hash.add(HostPattern.lowerCase(host[index]))
        }
        visit(hostEdge(Self.exactHosts, hash, host, from: 0, to: end), view, at: 0, &search)
    }

    private func visit(
        _ number: Int32,
        _ view: borrowing TargetView,
        at place: Int,
        _ search: inout Search
    ) {
        guard number >= 0 else { return }
        let node = nodes[Int(number)]
        guard node.least < search.best else { return }
        take(node.rests, &search)
        guard place < view.segmentCount(search.reading) else {
            take(node.ends, &search)
            return
        }
        let range = view.segment(place, search.reading)
        let segment = view.octets.span.extracting(range)
        var hash = SegmentHash()
        for index in 0..<segment.count { hash.add(segment[index]) }
        let literal = edge(number, hash.value) { RouteMatch.isSame($0, segment) }
        visit(literal, view, at: place + 1, &search)
        if !range.isEmpty { visit(node.one, view, at: place + 1, &search) }
    }

    /// Entries are in the order of the rules, so the first that meets the method is the best.
    private func take(_ range: Range<Int32>, _ search: inout Search) {
        for place in range {
            let entry = entries[Int(place)]
            guard entry.rule < search.best else { return }
            if entry.methods & search.methods != 0 {
                search.best = entry.rule
                return
            }
        }
    }

    private func bit(of method: Span<UInt8>) -> UInt64 {
        for (place, range) in methodRanges.enumerated()
        where RouteMatch.isSame(methodNames.span.extracting(range), method) {
            return 1 << UInt64(place)
        }
        return Self.otherMethod
    }

    private func hostEdge(
        _ from: Int32,
        _ hash: SegmentHash,
        _ host: Span<UInt8>,
        from start: Int,
        to end: Int
    ) -> Int32 {
        edge(from, hash.value) { label in
            label.count == end - start && HostPattern.agrees(label, with: host, from: start)
        }
    }

    /// The node behind the edge whose label satisfies the closure, or -1.
    @inline(__always)
    private func edge(_ from: Int32, _ hash: UInt32, where isSame: (Span<UInt8>) -> Bool) -> Int32 {
        let mask = edges.count - 1
        var place = Self.place(from, hash) & mask
        while let edge = edges[place] {
            let label = Int(edge.label.lowerBound)..<Int(edge.label.upperBound)
            if edge.from == from, edge.hash == hash, isSame(labels.span.extracting(label)) {
                return edge.to
            }
            place = (place + 1) & mask
        }
        return -1
    }

    /// Where the search for an edge begins.
    static func place(_ from: Int32, _ hash: UInt32) -> Int {
        Int(hash ^ UInt32(bitPattern: from) &* 0x9E37_79B1)
    }
}

/// FNV-1a, 32 bits.
struct SegmentHash {
    private(set) var value: UInt32 = 0x811C_9DC5

    @inline(__always)
    mutating func add(_ octet: UInt8) { value = (value ^ UInt32(octet)) &* 0x0100_0193 }
}
