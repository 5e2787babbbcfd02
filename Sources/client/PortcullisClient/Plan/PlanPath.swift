/// A path pattern: `/v1/orders`, `/v1/users/*`, `/v1/files/**`.
struct PlanPath: Hashable, Sendable {
    private enum Segment: Hashable {
        case literal([UInt8])
        /// `*`: any one segment that is not empty.
        case one
    }

    private let segments: [Segment]
    /// Whether it ends in `**`, which takes any rest, also none: `/v1/**` takes `/v1`.
    private let hasRest: Bool

    init(_ text: String) {
        var parts = RequestPlace.parts(text.utf8)
        hasRest = parts.last.map { $0.elementsEqual("**".utf8) } ?? false
        if hasRest { parts.removeLast() }
        segments = parts.map { part in
            part.elementsEqual("*".utf8) ? .one : .literal(RequestPlace.decoded(part))
        }
    }

    /// Whether a path of these segments, percent-decoded, is one of them.
    func matches(_ path: [[UInt8]]) -> Bool {
        guard hasRest ? path.count >= segments.count : path.count == segments.count else {
            return false
        }
        return zip(segments, path).allSatisfy { segment, text in
            switch segment {
            case .one: !text.isEmpty
            case .literal(let literal): literal == text
            }
        }
    }
}
