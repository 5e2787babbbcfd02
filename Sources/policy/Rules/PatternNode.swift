/// A place in path patterns, in a tree that is one array: what goes on from it by a literal segment
/// and by `*`, as places in the array.
protocol PatternNode {
    var literals: [[UInt8]: Int] { get set }
    var one: Int? { get set }

    init()
}

extension Array where Element: PatternNode {
    /// Follows a pattern from a place to its end, and makes the places that are missing.
    mutating func place(of path: PathPattern, from root: Int) -> Int {
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
