/// What is counted of the requests of each rule, besides verdicts.
struct RuleTally: Sendable {
    /// The first digits of statuses, 1 to 5.
    static let classes = 5

    private var times: [Histogram]
    private var statuses: [UInt64]

    init(ruleCount: Int) {
        times = Array(repeating: Histogram(), count: ruleCount)
        statuses = Array(repeating: 0, count: ruleCount * Self.classes)
    }

    /// Counts a request. A rule that does not exist is not counted; nor is the status of a request
    /// that was not answered.
    mutating func add(rule: Int, status: Int, nanoseconds: UInt64) {
        guard times.indices.contains(rule) else { return }
        times[rule].add(nanoseconds)
        guard (100..<600).contains(status) else { return }
        statuses[rule * Self.classes + status / 100 - 1] &+= 1
    }

    mutating func renumber(_ places: [Int?]) {
        let before = self
        times = places.map { $0.map(before.times(of:)) ?? Histogram() }
        statuses = places.flatMap { place in
            (0..<Self.classes).map { number in
                place.map { before.count(rule: $0, class: number + 1) } ?? 0
            }
        }
    }

    mutating func merge(_ other: RuleTally) {
        for rule in other.times.indices {
            if rule == times.count {
                times.append(Histogram())
                statuses.append(contentsOf: repeatElement(0, count: Self.classes))
            }
            times[rule].merge(other.times[rule])
            for number in 0..<Self.classes {
                let place = rule * Self.classes + number
                statuses[place] &+= other.statuses[place]
            }
        }
    }

    func times(of rule: Int) -> Histogram {
        times.indices.contains(rule) ? times[rule] : Histogram()
    }

    /// Responses whose status begins with a digit.
    func count(rule: Int, class number: Int) -> UInt64 {
        guard times.indices.contains(rule), (1...Self.classes).contains(number) else { return 0 }
        return statuses[rule * Self.classes + number - 1]
    }
}
