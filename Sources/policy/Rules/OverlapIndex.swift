import Encodings

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
        visit(0, path, at: 0, &findings)
        findings.numbers.sort()
        return findings
    }

    private func visit(_ place: Int, _ path: PathPattern, at depth: Int, _ found: inout Findings) {
        guard Self.take(1, &found) else { return }
        let node = nodes[place]
        note(node.rests, &found)
        guard depth < path.segments.count else {
            note(node.ends, &found)
            guard path.hasRest else { return }
            for child in node.literals.values { visit(child, path, at: depth, &found) }
            if let one = node.one { visit(one, path, at: depth, &found) }
            return
        }
        switch path.segments[depth] {
        case .literal(let literal):
            if let child = node.literals[literal] { visit(child, path, at: depth + 1, &found) }
            guard !literal.isEmpty else { return }
        case .one:
            for (literal, child) in node.literals where !literal.isEmpty {
                visit(child, path, at: depth + 1, &found)
            }
        }
        if let one = node.one { visit(one, path, at: depth + 1, &found) }
    }

    private func note(_ numbers: [Int], _ found: inout Findings) {
        for number in numbers where Self.take(1, &found) { found.numbers.append(number) }
    }

    private static func take(_ count: Int, _ found: inout Findings) -> Bool {
        guard found.stepsLeft >= count else {
            found.isCut = true
            return false
        }
        found.stepsLeft -= count
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
