import HTTPWire

extension RouteIndex {
    /// An index over the matches in their order, for all interpretations of paths.
    ///
    /// `nil` when they name more than ``methodsMax`` methods in total.
    init?(_ matches: [RouteMatch]) {
        let names = matches.reduce(into: [String]()) { names, match in
            for name in match.methods ?? [] where !names.contains(name) { names.append(name) }
        }
        guard names.count <= Self.methodsMax else { return nil }
        for name in names {
            let start = methodNames.count
            methodNames.append(contentsOf: name.utf8)
            methodRanges.append(start..<methodNames.count)
        }
        clients = Array(Set(matches.compactMap(\.clients)))
        let places = Dictionary(uniqueKeysWithValues: zip(clients, Int32(0)...))
        var tree = Tree()
        for (rule, match) in matches.enumerated() {
            var methods: UInt64 = match.methods == nil ? .max : 0
            for (place, name) in names.enumerated() where match.methods?.contains(name) == true {
                methods |= 1 << UInt64(place)
            }
            for spelling in match.path.spellings {
                let entry = Entry(
                    rule: Int32(clamping: rule),
                    decisive: spelling.decisive,
                    taken: spelling.taken,
                    methods: methods,
                    clients: match.clients.flatMap { places[$0] } ?? -1
                )
                tree.add(entry, of: match, at: spelling.segments)
                odd.formUnion(spelling.decisive)
                if spelling.segments.contains(where: \.hasPunctuation) {
                    relevant.insert(.foldsPunctuation)
                }
                depth = max(depth, spelling.segments.count)
            }
        }
        // A rule that names GET also matches HEAD.
        for (place, name) in names.enumerated() where name == "GET" {
            methodOfGet = 1 << UInt64(place)
        }
        hasHostSuffixes = !tree.nodes[Int(Self.hostSuffixes)].literals.isEmpty
        addresses = tree.addresses
        namesHosts =
            hasHostSuffixes || !addresses.isEmpty
            || !tree.nodes[Int(Self.exactHosts)].literals.isEmpty
        flatten(tree)
    }

    /// The tree while it grows; look-ups use the flat form.
    private struct Tree {
        struct Node {
            var least = Int32.max
            var one: Int32 = -1
            var literals: [[UInt8]: Int32] = [:]
            var ends: [Entry] = []
            var rests: [Entry] = []
        }

        var nodes = [Node](repeating: Node(), count: 3)
        var addresses: [IPAddress: Int32] = [:]

        mutating func add(_ entry: Entry, of match: RouteMatch, at segments: [PathPattern.Segment])
        {
            var node =
                switch match.host {
                case .any: RouteIndex.anyHost
                case .exact(let name): child(of: RouteIndex.exactHosts, name)
                case .under(let name): child(of: RouteIndex.hostSuffixes, name)
                case .address(let address): root(of: address)
                }
            note(entry.rule, at: node)
            for segment in segments {
                switch segment {
                case .literal(let literal): node = child(of: node, literal)
                case .one: node = one(of: node)
                }
                note(entry.rule, at: node)
            }
            if match.path.hasRest {
                nodes[Int(node)].rests.append(entry)
            } else {
                nodes[Int(node)].ends.append(entry)
            }
        }

        private mutating func note(_ rule: Int32, at node: Int32) {
            nodes[Int(node)].least = min(nodes[Int(node)].least, rule)
        }

        private mutating func root(of address: IPAddress) -> Int32 {
            if let root = addresses[address] { return root }
            let root = Int32(clamping: nodes.count)
            addresses[address] = root
            nodes.append(Node())
            return root
        }

        private mutating func child(of node: Int32, _ literal: [UInt8]) -> Int32 {
            if let child = nodes[Int(node)].literals[literal] { return child }
            let child = Int32(clamping: nodes.count)
            nodes[Int(node)].literals[literal] = child
            nodes.append(Node())
            return child
        }

        private mutating func one(of node: Int32) -> Int32 {
            if nodes[Int(node)].one >= 0 { return nodes[Int(node)].one }
            let child = Int32(clamping: nodes.count)
            nodes[Int(node)].one = child
            nodes.append(Node())
            return child
        }
    }

    private mutating func flatten(_ tree: Tree) {
        let count = tree.nodes.reduce(0) { $0 + $1.literals.count }
        var capacity = 8
        while capacity < count * 2 + 1 { capacity *= 2 }
        edges = [Edge?](repeating: nil, count: capacity)
        for (number, built) in tree.nodes.enumerated() {
            var node = Node(least: built.least, one: built.one)
            node.ends = append(built.ends)
            node.rests = append(built.rests)
            nodes.append(node)
            for (literal, child) in built.literals {
                insert(literal, from: Int32(clamping: number), to: child)
            }
        }
    }

    private mutating func append(_ added: [Entry]) -> Range<Int32> {
        let start = Int32(clamping: entries.count)
        entries.append(contentsOf: added)
        return start..<Int32(clamping: entries.count)
    }

    private mutating func insert(_ label: [UInt8], from: Int32, to: Int32) {
        var hash = SegmentHash()
        // Hosts are hashed from their end on; see `visitHosts`.
        for byte in from < Self.anyHost ? label.reversed() : label { hash.add(byte) }
        let start = Int32(clamping: labels.count)
        labels.append(contentsOf: label)
        if from >= Self.anyHost { labelBytesMax = max(labelBytesMax, label.count) }
        let mask = edges.count - 1
        var place = Self.place(from, hash.value) & mask
        while edges[place] != nil { place = (place + 1) & mask }
        let range = start..<Int32(clamping: labels.count)
        edges[place] = Edge(from: from, hash: hash.value, label: range, to: to)
    }
}

extension PathPattern.Segment {
    fileprivate var hasPunctuation: Bool {
        guard case .literal(let literal) = self else { return false }
        return literal.contains(UInt8(ascii: "_")) || ByteScan.hasPunctuation(literal.span)
    }
}
