// The gateway's counts, and how it shows them.
//
// Each event loop owns one `Tally` and adds to it without locks. A reader asks every event loop for
// a copy and merges the copies. Names are raw values of enums, in the form that Prometheus expects,
// and are API: add, do not rename.
//
// Labels are bounded: rule ids come from the configuration, reasons from one table. Nothing a
// client sends becomes a label.

/// The counts of one event loop. It is a plain value: each event loop owns one, and readers merge
/// copies.
package struct Tally: Sendable {
    /// The number of slots that a rule has for its verdicts; the owner of the refusal table sets
    /// it.
    package let verdictSlots: Int
    private var counters = [UInt64](repeating: 0, count: Counter.allCases.count)
    private var distributions = [Histogram](
        repeating: Histogram(),
        count: Distribution.allCases.count
    )
    private var verdicts: [UInt64]
    /// Two for each rule: bodies cut short after `pass`, and after anything else.
    private var cutShort: [UInt64]
    private var statuses = [UInt64](repeating: 0, count: 600)
    private var rules: RuleTally
    /// The exemplars of the requests' times.
    package private(set) var requestExemplars = ExemplarSet()

    /// - Parameters:
    ///   - ruleCount: rules, the default one included.
    ///   - verdictSlots: verdicts counted apart for each rule.
    package init(ruleCount: Int, verdictSlots: Int) {
        self.verdictSlots = verdictSlots
        verdicts = Array(repeating: 0, count: ruleCount * verdictSlots)
        cutShort = Array(repeating: 0, count: ruleCount * 2)
        rules = RuleTally(ruleCount: ruleCount)
    }

    /// Counts a request that has ended, with the time that it took.
    ///
    /// - rule: `nil` where the gateway answered by a service.
    /// - status: 0 where it was not answered.
    package mutating func addRequest(_ exemplar: Exemplar, rule: Int?, status: Int) {
        add(.request, nanoseconds: exemplar.value)
        requestExemplars.add(exemplar)
        if status > 0 { addStatus(status) }
        if let rule { rules.add(rule: rule, status: status, nanoseconds: exemplar.value) }
    }

    /// Counts the time of an origin of a rule until the first byte of its response.
    ///
    /// - rule: `nil` where a reload has removed the rule.
    package mutating func addFirstByte(rule: Int?, nanoseconds: UInt64) {
        add(.firstByte, nanoseconds: nanoseconds)
        if let rule { rules.add(rule: rule, firstByteNanoseconds: nanoseconds) }
    }

    /// The times until the first bytes of a rule's origins.
    package func firstBytes(rule: Int) -> Histogram { rules.firstBytes(of: rule) }

    package func requestTimes(rule: Int) -> Histogram { rules.times(of: rule) }

    /// Responses to requests of a rule whose status begins with a digit, 1 to 5.
    package func responses(rule: Int, class number: Int) -> UInt64 {
        rules.count(rule: rule, class: number)
    }

    package mutating func add(_ counter: Counter, _ amount: UInt64 = 1) {
        counters[counter.rawValue] &+= amount
    }

    package mutating func add(_ distribution: Distribution, nanoseconds: UInt64) {
        distributions[distribution.rawValue].add(nanoseconds)
    }

    package mutating func add(_ distribution: Distribution, size: Int) {
        distributions[distribution.rawValue].add(UInt64(clamping: size))
    }

    /// Counts a verdict. A rule or slot that does not exist is not counted: one from before a
    /// reload, or one that is in no rule set.
    package mutating func addVerdict(rule: Int, slot: Int) {
        guard let index = Self.place(rule, slot, of: verdictSlots, in: verdicts) else { return }
        verdicts[index] &+= 1
    }

    /// Counts a request whose origin got the head and not all of the content. `isPassed` tells
    /// whether that head said `pass` to the origin.
    package mutating func addCutShort(rule: Int, isPassed: Bool) {
        guard let index = Self.place(rule, isPassed ? 0 : 1, of: 2, in: cutShort) else { return }
        cutShort[index] &+= 1
    }

    /// The place of a rule's column in a table with this number of columns for each rule; `nil` for
    /// none. A rule's number may be any number, so it is compared before it is multiplied.
    private static func place(_ rule: Int, _ column: Int, of columns: Int, in table: [UInt64])
        -> Int?
    {
        guard column >= 0, column < columns, rule >= 0, rule < table.count / columns else {
            return nil
        }
        return rule * columns + column
    }

    /// Counts a response to a client by its status code.
    package mutating func addStatus(_ status: Int) {
        guard statuses.indices.contains(status) else { return }
        statuses[status] &+= 1
    }

    /// Takes over the rules of a new rule set.
    ///
    /// - Parameter places: for each new rule its old number; `nil` for a new rule, whose counts
    ///   begin at zero.
    package mutating func renumber(_ places: [Int?]) {
        var moved: [UInt64] = []
        moved.reserveCapacity(places.count * verdictSlots)
        for place in places {
            for slot in 0..<verdictSlots {
                moved.append(place.map { verdicts(rule: $0, slot: slot) } ?? 0)
            }
        }
        verdicts = moved
        rules.renumber(places)
        cutShort = places.flatMap { place in
            [true, false].map { isPassed in
                place.map { self.cutShort(rule: $0, isPassed: isPassed) } ?? 0
            }
        }
    }

    package mutating func merge(_ other: Tally) {
        for index in counters.indices { counters[index] &+= other.counters[index] }
        for index in distributions.indices {
            distributions[index].merge(other.distributions[index])
        }
        for index in statuses.indices { statuses[index] &+= other.statuses[index] }
        rules.merge(other.rules)
        requestExemplars.merge(other.requestExemplars)
        let missing = other.verdicts.count - verdicts.count
        if missing > 0 { verdicts.append(contentsOf: repeatElement(0, count: missing)) }
        for index in other.verdicts.indices { verdicts[index] &+= other.verdicts[index] }
        let absent = other.cutShort.count - cutShort.count
        if absent > 0 { cutShort.append(contentsOf: repeatElement(0, count: absent)) }
        for index in other.cutShort.indices { cutShort[index] &+= other.cutShort[index] }
    }

    package subscript(_ counter: Counter) -> UInt64 { counters[counter.rawValue] }
    package subscript(_ distribution: Distribution) -> Histogram {
        distributions[distribution.rawValue]
    }

    package func verdicts(rule: Int, slot: Int) -> UInt64 {
        Self.place(rule, slot, of: verdictSlots, in: verdicts).map { verdicts[$0] } ?? 0
    }

    package func cutShort(rule: Int, isPassed: Bool) -> UInt64 {
        Self.place(rule, isPassed ? 0 : 1, of: 2, in: cutShort).map { cutShort[$0] } ?? 0
    }

    /// Responses by status code; codes that never occurred are left out.
    package var statusCounts: [(status: Int, count: UInt64)] {
        statuses.indices.compactMap { statuses[$0] > 0 ? ($0, statuses[$0]) : nil }
    }
}

/// The counts of each rule's requests, besides verdicts.
private struct RuleTally: Sendable {
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

    /// Counts a request. A rule that does not exist is not counted. The status of an unanswered
    /// request is not counted either.
    mutating func add(rule: Int, status: Int, nanoseconds: UInt64) {
        guard times.indices.contains(rule) else { return }
        times[rule].add(nanoseconds)
        guard (100..<600).contains(status) else { return }
        statuses[rule * Self.classes + status / 100 - 1] &+= 1
    }

    /// Counts the time of an origin until the first byte of its response.
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
