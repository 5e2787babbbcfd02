/// What is counted of the requests of each rule, besides verdicts.
struct RuleTally: Sendable {
    /// The first digits of statuses, 1 to 5.
    static let classes = 5

    private var times: [Histogram]
    private var firstBytes: [Histogram]
    private var statuses: [UInt64]

    init(ruleCount: Int) {
        times = Array(repeating: Histogram(), count: ruleCount)
        firstBytes = times
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

    /// Counts how long an origin took for the first byte of its response.
    mutating func add(rule: Int, firstByteNanoseconds nanoseconds: UInt64) {
        guard firstBytes.indices.contains(rule) else { return }
        firstBytes[rule].add(nanoseconds)
    }

    mutating func renumber(_ places: [Int?]) {
        let before = self
        times = places.map { $0.map(before.times(of:)) ?? Histogram() }
        firstBytes = places.map { $0.map(before.firstBytes(of:)) ?? Histogram() }
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
                firstBytes.append(Histogram())
                statuses.append(contentsOf: repeatElement(0, count: Self.classes))
            }
            times[rule].merge(other.times[rule])
            firstBytes[rule].merge(other.firstBytes[rule])
            for number in 0..<Self.classes {
                let place = rule * Self.classes + number
                statuses[place] &+= other.statuses[place]
            }
        }
    }

    func times(of rule: Int) -> Histogram {
        times.indices.contains(rule) ? times[rule] : Histogram()
    }

    func firstBytes(of rule: Int) -> Histogram {
        firstBytes.indices.contains(rule) ? firstBytes[rule] : Histogram()
    }

    /// Responses whose status begins with a digit.
    func count(rule: Int, class number: Int) -> UInt64 {
        guard times.indices.contains(rule), (1...Self.classes).contains(number) else { return 0 }
        return statuses[rule * Self.classes + number - 1]
    }
}
