import HTTPWire

/// Finds the first rule for a request by following its path through a tree, once for each kind of
/// host pattern that can match its host.
///
/// The tree is flat: nodes, entries, labels and a hash table of edges, each in one array, so that
/// a look-up allocates nothing and counts no reference. A node is a place in a pattern; its edges
/// are the literal segments that go on from there. Hosts are edges too, from two nodes that exist
/// for them.
///
/// The tree has a pattern once for each way in which servers may spell it; most have one. An entry
/// names the interpretations of a path for which it is there, so one tree serves all of them.
///
/// A look-up visits at most the nodes whose patterns match the path, and of those only the ones
/// with a rule earlier than the best so far. Only rules fill the hash table; a client's bytes are
/// looked up and never inserted.
struct RouteIndex: Sendable {
    struct Node: Sendable {
        /// The lowest rule number in this node and all below; a look-up skips nodes that can't win.
        var least = Int32.max
        /// The node after `*`, or -1.
        var one: Int32 = -1
        /// Rules whose pattern ends here, and rules whose `**` is here: ranges of `entries`.
        var ends: Range<Int32> = 0..<0
        var rests: Range<Int32> = 0..<0
    }

    struct Entry: Sendable {
        let rule: Int32
        /// The interpretations in which it is here; see ``PathPattern/Spelling``.
        let decisive: PathInterpretation
        let taken: PathInterpretation
        let methods: UInt64
        /// The place in `clients` of the pattern that the client has to meet; -1 for every client.
        var clients: Int32 = -1
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
    static let otherMethod: UInt64 = 1 << 63
    /// The most method names that all rules may name together.
    static let methodsMax = 63

    var nodes: [Node] = []
    var entries: [Entry] = []
    var labels: [UInt8] = []
    /// Open addressing, a power of two, at most half full; `nil` is a free place.
    var edges: [Edge?] = []
    var methodNames: [UInt8] = []
    var methodRanges: [Range<Int>] = []
    /// The patterns of clients, each once.
    var clients: [ClientPattern] = []
    /// Whether a pattern names a host, an address, or the end of hosts.
    var namesHosts = false
    var hasHostSuffixes = false
    /// The trees of the rules for one address.
    var addresses: [IPAddress: Int32] = [:]
    /// The bit of GET, which is also for HEAD; none when no rule names GET.
    var methodOfGet: UInt64 = 0
    /// The most segments that a pattern has.
    var depth = 0
    /// The most bytes of a segment that a pattern names.
    var labelBytesMax = 0
    /// The steps of interpretations that make another pattern of some pattern.
    var odd: PathInterpretation = []
    /// The steps that can lead a path to some pattern. Without a pattern that has punctuation no
    /// path is read without its punctuation.
    var relevant = PathInterpretation.all.subtracting(.foldsPunctuation)

    /// A search for the first rule that a request meets in one interpretation of its path.
    struct Search {
        /// The bits of the request's method.
        let methods: UInt64
        /// The client's address; `nil` where it has none.
        let client: IPAddress?
        private(set) var interpretation = PathInterpretation.asWritten
        /// The lowest number of a rule so far; `Int32.max` before there is one.
        var best = Int32.max
        /// The steps on which an answer depended so far, other than by the path that they make.
        /// None at first; a literal `[]` costs 770 instructions, as ``PathInterpretation/ofBytes``
        /// says.
        var decisive = PathInterpretation.asWritten

        init(methods: UInt64, from client: IPAddress?) {
            (self.methods, self.client) = (methods, client)
        }

        /// Makes it a search in another interpretation.
        mutating func begin(_ interpretation: PathInterpretation) {
            self.interpretation = interpretation
            best = .max
        }
    }

    /// Finds the lowest number of a match that the request meets.
    ///
    /// `ends`: the end of each of the path's segments in `bytes`.
    func find(
        _ search: inout Search,
        host: Span<UInt8>,
        bytes: Span<UInt8>,
        ends: Span<UInt32>
    ) {
        visit(Self.anyHost, bytes: bytes, ends: ends, at: 0, search: &search)
        if namesHosts { visitHosts(host, bytes: bytes, ends: ends, search: &search) }
    }

    /// Visits the trees of the host itself and of all `*.` patterns above it.
    ///
    /// The hash runs from the host's last byte to its first, so that one pass has the hash of
    /// every suffix on its way.
    private func visitHosts(
        _ host: Span<UInt8>,
        bytes: Span<UInt8>,
        ends: Span<UInt32>,
        search: inout Search
    ) {
        let end = HostPattern.end(of: host)
        if !addresses.isEmpty, let address = HostPattern.address(host, end: end) {
            visit(addresses[address] ?? -1, bytes: bytes, ends: ends, at: 0, search: &search)
        }
        var hash = SegmentHash()
        var index = end
        while index > 0 {
            index -= 1
            if hasHostSuffixes, index > 0, index < end - 1, host[index] == UInt8(ascii: ".") {
                let suffix = hostEdge(
                    Self.hostSuffixes,
                    hash: hash,
                    host: host,
                    from: index + 1,
                    to: end
                )
                visit(suffix, bytes: bytes, ends: ends, at: 0, search: &search)
            }
            hash.add(HostPattern.lowerCase(host[index]))
        }
        let exact = hostEdge(Self.exactHosts, hash: hash, host: host, from: 0, to: end)
        visit(exact, bytes: bytes, ends: ends, at: 0, search: &search)
    }

    private func visit(
        _ number: Int32,
        bytes: Span<UInt8>,
        ends: Span<UInt32>,
        at place: Int,
        search: inout Search
    ) {
        guard number >= 0 else { return }
        let node = nodes[Int(number)]
        guard node.least < search.best else { return }
        take(node.rests, &search)
        guard place < ends.count else {
            take(node.ends, &search)
            return
        }
        let start = place == 0 ? 0 : Int(ends[place - 1])
        let segment = bytes.extracting(start..<Int(ends[place]))
        if segment.count <= labelBytesMax {
            let literal = child(of: number, segment, search.interpretation)
            visit(literal, bytes: bytes, ends: ends, at: place + 1, search: &search)
        }
        if !segment.isEmpty {
            visit(node.one, bytes: bytes, ends: ends, at: place + 1, search: &search)
        }
    }

    /// The node after a literal segment, or -1.
    @inline(__always)
    private func child(of node: Int32, _ segment: Span<UInt8>, _ interpretation: PathInterpretation)
        -> Int32
    {
        var hash = SegmentHash()
        guard interpretation.isDisjoint(with: .ofBytes) else {
            for index in 0..<segment.count { hash.add(interpretation.folded(segment[index])) }
            return edge(node, hash.value) { label in
                guard label.count == segment.count else { return false }
                for index in 0..<label.count
                where label[index] != interpretation.folded(segment[index]) {
                    return false
                }
                return true
            }
        }
        for index in 0..<segment.count { hash.add(segment[index]) }
        return edge(node, hash.value) { RouteMatch.isSame($0, segment) }
    }

    /// Entries are in the order of the rules, so the first that meets the method is the best.
    private func take(_ range: Range<Int32>, _ search: inout Search) {
        for place in range {
            let entry = entries[Int(place)]
            guard entry.rule < search.best else { return }
            guard entry.methods & search.methods != 0 else { continue }
            if entry.clients >= 0, !clients[Int(entry.clients)].matches(search.client) { continue }
            search.decisive.formUnion(entry.decisive)
            if search.interpretation.intersection(entry.decisive) == entry.taken {
                search.best = entry.rule
                return
            }
        }
    }

    /// The bits of a method; `nil` for the name of a rule's method in another case.
    ///
    /// Servers such as Django's turn methods into upper case, and would run what a rule is for.
    func methods(_ method: Span<UInt8>) -> UInt64? {
        let get = RouteMatch.isHead(method) ? methodOfGet : 0
        for (place, range) in methodRanges.enumerated()
        where RouteMatch.isSame(methodNames.span.extracting(range), method) {
            return 1 << UInt64(place) | get
        }
        for range in methodRanges
        where RouteMatch.isFolded(method, methodNames.span.extracting(range)) { return nil }
        return Self.otherMethod | get
    }

    private func hostEdge(
        _ from: Int32,
        hash: SegmentHash,
        host: Span<UInt8>,
        from start: Int,
        to end: Int
    ) -> Int32 {
        edge(from, hash.value) { label in
            label.count == end - start && HostPattern.agrees(label, with: host, from: start)
        }
    }

    /// The node after the edge whose label satisfies the closure, or -1.
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
    mutating func add(_ byte: UInt8) { value = (value ^ UInt32(byte)) &* 0x0100_0193 }
}
