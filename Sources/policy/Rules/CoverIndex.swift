/// Finds, among the matches added before, the first that matches all requests of another one.
///
/// A tree by host and path segments that is followed by patterns, so that a match is compared only
/// with those whose host and path can cover its own, and of these with those that have one of its
/// methods. Comparing all pairs took half a minute for 10,000 rules.
package struct CoverIndex {
    /// The matches that end at one place, in the order in which they were added.
    private struct Entries {
        var ofEveryMethod: [Int] = []
        var byMethod: [String: [Int]] = [:]
    }

    private struct Node: PatternNode {
        /// The place after `*`.
        var one: Int?
        var literals: [[UInt8]: Int] = [:]
        var ends = Entries()
        var rests = Entries()
    }

    private var nodes: [Node] = []
    private var hosts: [HostPattern: Int] = [:]
    private var matches: [Int: RouteMatch] = [:]
    /// Places visited and matches compared so far: the cost, for tests.
    package private(set) var steps = 0

    package init() {}

    /// Adds a match unless an earlier one covers it, and returns the number of the first that does.
    ///
    /// A covered match can be left out: the other match covers all that it covers.
    package mutating func add(_ match: RouteMatch, number: Int) -> Int? {
        var search = Search(match: match, segments: match.path.segments)
        for host in match.host.covering {
            guard let root = hosts[host] else { continue }
            visit(root, at: 0, &search)
        }
        guard search.best == nil else { return search.best }
        matches[number] = match
        insert(match, number)
        return nil
    }

    private struct Search {
        let match: RouteMatch
        let segments: [PathPattern.Segment]
        var best: Int?
    }

    /// Follows the pattern as written, as `PathPattern.covers` does.
    private mutating func visit(_ place: Int, at depth: Int, _ search: inout Search) {
        steps += 1
        compare(nodes[place].rests, &search)
        guard depth < search.segments.count else {
            if !search.match.path.hasRest { compare(nodes[place].ends, &search) }
            return
        }
        switch search.segments[depth] {
        case .literal(let literal):
            if let child = nodes[place].literals[literal] { visit(child, at: depth + 1, &search) }
            guard !literal.isEmpty else { return }
        case .one: break
        }
        if let child = nodes[place].one { visit(child, at: depth + 1, &search) }
    }

    private mutating func compare(_ entries: Entries, _ search: inout Search) {
        compare(entries.ofEveryMethod, &search)
        // A match that covers this one has all of its methods, and so the first of them.
        guard let method = search.match.methods?.first else { return }
        compare(entries.byMethod[method] ?? [], &search)
    }

    private mutating func compare(_ numbers: [Int], _ search: inout Search) {
        for number in numbers {
            if let best = search.best, best < number { return }
            steps += 1
            guard matches[number]?.covers(search.match) == true else { continue }
            search.best = number
            return
        }
    }

    private mutating func insert(_ match: RouteMatch, _ number: Int) {
        var place = hosts[match.host] ?? nodes.count
        if place == nodes.count {
            hosts[match.host] = place
            nodes.append(Node())
        }
        place = nodes.place(of: match.path, from: place)
        if match.path.hasRest {
            Self.insert(match, number, into: &nodes[place].rests)
        } else {
            Self.insert(match, number, into: &nodes[place].ends)
        }
    }

    private static func insert(_ match: RouteMatch, _ number: Int, into entries: inout Entries) {
        guard let methods = match.methods else { return entries.ofEveryMethod.append(number) }
        // A rule for GET may take HEAD as well.
        for method in Set(methods.contains("GET") ? methods + ["HEAD"] : methods) {
            entries.byMethod[method, default: []].append(number)
        }
    }
}

extension HostPattern {
    /// The patterns that cover this one, itself included, and perhaps more.
    fileprivate var covering: [HostPattern] {
        switch self {
        case .any: return [.any]
        case .address: return [.any, self]
        case .exact(let name), .under(let name):
            let dots = name.indices.filter { name[$0] == UInt8(ascii: ".") }
            return [.any, self] + dots.map { .under(Array(name[($0 + 1)...])) }
        }
    }
}
