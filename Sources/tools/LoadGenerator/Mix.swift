import Rules

/// The shares of the kinds, and the kind of the n-th request.
package struct Mix: Equatable, Sendable {
    /// Millionths by kind, in the order of `RequestKind.allCases`; they add up to a million.
    package let millionths: [Int]
    private let bounds: [Int]
    private static let kinds = RequestKind.allCases

    /// Nothing but good requests.
    package static let allGood = Mix(others: [:])

    /// The rest that the others leave is good.
    private init(others: [RequestKind: Int]) {
        let good = 1_000_000 - others.values.reduce(0, +)
        millionths = RequestKind.allCases.map { $0 == .good ? good : others[$0] ?? 0 }
        var end = 0
        bounds = millionths.map { share in
            end += share
            return end
        }
    }

    /// Reads `replayed=3%,tampered=2%,missing=1%`; the rest is good.
    ///
    /// `nil` for another word, a repeated word, a value that is no percentage, or more than 100 %
    /// together.
    package init?(_ text: String) {
        var others: [RequestKind: Int] = [:]
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: "=", omittingEmptySubsequences: false)
            guard words.count == 2, let kind = RequestKind(rawValue: String(words[0])),
                let share = Share(percent: words[1]), kind != .good, others[kind] == nil
            else { return nil }
            others[kind] = share.millionths
        }
        guard others.values.reduce(0, +) <= 1_000_000 else { return nil }
        self.init(others: others)
    }

    package func share(of kind: RequestKind) -> Int {
        RequestKind.allCases.firstIndex(of: kind).map { millionths[$0] } ?? 0
    }

    /// The kind of the n-th request. It is equal in every run, and the kinds form no pattern.
    package func kind(at number: UInt64) -> RequestKind {
        let point = Int(Scatter.word(number) % 1_000_000)
        for place in bounds.indices where point < bounds[place] { return Self.kinds[place] }
        return .good
    }

    /// `good 90%, replayed 10%`.
    package var text: String {
        zip(RequestKind.allCases, millionths).filter { $0.1 > 0 }
            .map { "\($0.0.rawValue) \(Share(millionths: $0.1)?.text ?? "")" }
            .joined(separator: ", ")
    }
}
