import Encodings

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

/// Finds, among the path patterns added before, those that share a path with another one.
///
/// A tree by path segments, followed by patterns. A search has a bound: `/*/a`, `/*/b`, … share
/// paths with `/a/*`, `/b/*`, …, each with each.
package struct OverlapIndex {
    /// The result of a search.
    package struct Findings {
        /// The numbers of the patterns, in ascending order.
        package fileprivate(set) var numbers: [Int] = []
        /// The search ended at its bound.
        package fileprivate(set) var isCut = false
        fileprivate var stepsLeft: Int
    }

    private struct Node: PatternNode {
        /// The place after `*`.
        var one: Int?
        var literals: [[UInt8]: Int] = [:]
        var ends: [Int] = []
        var rests: [Int] = []
    }

    private var nodes = [Node()]

    package init() {}

    package mutating func add(_ path: PathPattern, number: Int) {
        let place = nodes.place(of: path, from: 0)
        if path.hasRest {
            nodes[place].rests.append(number)
        } else {
            nodes[place].ends.append(number)
        }
    }

    /// The patterns that share a path with this one, as written.
    ///
    /// - `stepsMax`: the most visited places and found patterns together.
    package func overlapping(_ path: PathPattern, stepsMax: Int) -> Findings {
        var findings = Findings(stepsLeft: stepsMax)
        visit(0, path, at: 0, into: &findings)
        findings.numbers.sort()
        return findings
    }

    private func visit(_ place: Int, _ path: PathPattern, at depth: Int, into found: inout Findings)
    {
        guard Self.take(&found) else { return }
        let node = nodes[place]
        note(node.rests, &found)
        guard depth < path.segments.count else {
            note(node.ends, &found)
            guard path.hasRest else { return }
            for child in node.literals.values { visit(child, path, at: depth, into: &found) }
            if let one = node.one { visit(one, path, at: depth, into: &found) }
            return
        }
        switch path.segments[depth] {
        case .literal(let literal):
            if let child = node.literals[literal] {
                visit(child, path, at: depth + 1, into: &found)
            }
            guard !literal.isEmpty else { return }
        case .one:
            for (literal, child) in node.literals where !literal.isEmpty {
                visit(child, path, at: depth + 1, into: &found)
            }
        }
        if let one = node.one { visit(one, path, at: depth + 1, into: &found) }
    }

    private func note(_ numbers: [Int], _ found: inout Findings) {
        for number in numbers where Self.take(&found) { found.numbers.append(number) }
    }

    private static func take(_ found: inout Findings) -> Bool {
        guard found.stepsLeft > 0 else {
            found.isCut = true
            return false
        }
        found.stepsLeft -= 1
        return true
    }
}

extension PathPattern {
    /// A path that both patterns match, as a request would write it. Such a path must exist.
    ///
    /// - `one`: the segment that stands for `*` where neither pattern says more; unreserved bytes.
    package func example(sharedWith other: PathPattern, one: String) -> String {
        let count = max(segments.count, other.segments.count)
        let parts = (0..<count).map { place in
            for pattern in [self, other] where place < pattern.segments.count {
                guard case .literal(let literal) = pattern.segments[place] else { continue }
                return Self.text(literal)
            }
            return one
        }
        return "/" + parts.joined(separator: "/")
    }

    /// A segment with everything encoded that does not stand for itself in one (RFC 3986 §3.3).
    private static func text(_ segment: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF")
        return segment.reduce(into: "") { text, byte in
            if byte.isAlphanumeric || "-._~!$&'()*+,=:@".utf8.contains(byte) {
                text.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                text += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
    }
}

/// A place in path patterns, in a tree that is one array: what goes on from it by a literal segment
/// and by `*`, as places in the array.
private protocol PatternNode {
    var literals: [[UInt8]: Int] { get set }
    var one: Int? { get set }

    init()
}

extension Array where Element: PatternNode {
    /// Follows a pattern from a place to its end, and makes the places that are missing.
    fileprivate mutating func place(of path: PathPattern, from root: Int) -> Int {
        var place = root
        for segment in path.segments {
            let next: Int?
            switch segment {
            case .literal(let literal):
                next = self[place].literals[literal]
                if next == nil { self[place].literals[literal] = count }
            case .one:
                next = self[place].one
                if next == nil { self[place].one = count }
            }
            place = next ?? count
            if next == nil { append(Element()) }
        }
        return place
    }
}
