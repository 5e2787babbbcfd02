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
        guard let rule else { return }
        rules.add(.request, rule: rule, nanoseconds: exemplar.value)
        rules.add(rule: rule, status: status)
    }

    /// Counts the time of a part of a request of a rule.
    package mutating func add(_ time: RuleTime, rule: Int, nanoseconds: UInt64) {
        rules.add(time, rule: rule, nanoseconds: nanoseconds)
    }

    /// Counts the time of an origin of a rule until the first byte of its response.
    ///
    /// - rule: `nil` where a reload has removed the rule.
    package mutating func addFirstByte(rule: Int?, nanoseconds: UInt64) {
        add(.firstByte, nanoseconds: nanoseconds)
        if let rule { rules.add(.origin, rule: rule, nanoseconds: nanoseconds) }
    }

    /// Keeps a request whose spans are recorded for the bucket of its time, which is counted apart.
    package mutating func keep(_ exemplar: Exemplar, of time: RuleTime, rule: Int) {
        rules.keep(exemplar, of: time, rule: rule)
    }

    package func times(_ time: RuleTime, rule: Int) -> Histogram { rules.times(time, of: rule) }

    /// The exemplars of a rule's times, in the buckets that a page shows of them; `nil` for none.
    package func exemplars(_ time: RuleTime, rule: Int) -> ExemplarSet? {
        rules.exemplars(time, of: rule)
    }

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

/// A time of a rule's requests that is counted by rule. The raw value is its place in a tally.
package enum RuleTime: Int, CaseIterable, Sendable {
    case request
    /// The verdict, without what is waited for.
    case judging
    /// The commit, and other parties.
    case waiting
    /// An origin, until the first byte of its response.
    case origin

    /// The metric's name without its prefix.
    package var name: String { row.name }
    /// What it measures, in one line.
    package var help: String { row.help }

    private var row: (name: String, help: String) {
        switch self {
        case .request: ("rule_request_seconds", "Time of a request by rule.")
        case .judging:
            ("rule_judging_seconds", "Time to judge a request by rule, without what it waited for.")
        case .waiting:
            (
                "rule_waiting_seconds",
                "Time a request waited for its commit and for other parties, by rule."
            )
        case .origin:
            (
                "rule_origin_seconds",
                "Time from the request's last head byte to the response's first, by rule."
            )
        }
    }

    /// The buckets that a page shows.
    package var buckets: [Int] {
        switch self {
        case .request, .waiting, .origin: Histogram.coarseBuckets
        case .judging: Histogram.shortBuckets
        }
    }
}

/// The counts of each rule's requests, besides verdicts.
private struct RuleTally: Sendable {
    /// The first digits of statuses, 1 to 5.
    static let classes = 5
    private static let kinds = RuleTime.allCases.count

    /// One for each rule and ``RuleTime``.
    private var times: [Histogram]
    /// By their place in `times`, for those that have one: few requests' spans are recorded.
    private var exemplars: [Int: ExemplarSet] = [:]
    /// One for each rule and class.
    private var statuses: [UInt64]

    init(ruleCount: Int) {
        times = Array(repeating: Histogram(), count: ruleCount * Self.kinds)
        statuses = Array(repeating: 0, count: ruleCount * Self.classes)
    }

    private var ruleCount: Int { statuses.count / Self.classes }

    /// A rule that does not exist is not counted.
    mutating func add(_ time: RuleTime, rule: Int, nanoseconds: UInt64) {
        guard (0..<ruleCount).contains(rule) else { return }
        times[rule * Self.kinds + time.rawValue].add(nanoseconds)
    }

    mutating func keep(_ exemplar: Exemplar, of time: RuleTime, rule: Int) {
        guard (0..<ruleCount).contains(rule) else { return }
        let place = rule * Self.kinds + time.rawValue
        exemplars[place, default: ExemplarSet(shown: time.buckets)].add(exemplar)
    }

    /// Counts a response. A rule that does not exist is not counted, and neither is the status of
    /// an unanswered request.
    mutating func add(rule: Int, status: Int) {
        guard (0..<ruleCount).contains(rule), (100..<600).contains(status) else { return }
        statuses[rule * Self.classes + status / 100 - 1] &+= 1
    }

    mutating func renumber(_ places: [Int?]) {
        let before = self
        times = places.flatMap { place in
            RuleTime.allCases.map { time in
                place.map { before.times(time, of: $0) } ?? Histogram()
            }
        }
        exemplars = [:]
        for (number, place) in places.enumerated() {
            for time in RuleTime.allCases {
                let kept = place.flatMap { before.exemplars(time, of: $0) }
                exemplars[number * Self.kinds + time.rawValue] = kept
            }
        }
        statuses = places.flatMap { place in
            (0..<Self.classes).map { number in
                place.map { before.count(rule: $0, class: number + 1) } ?? 0
            }
        }
    }

    mutating func merge(_ other: RuleTally) {
        let missing = other.ruleCount - ruleCount
        if missing > 0 {
            times += Array(repeating: Histogram(), count: missing * Self.kinds)
            statuses += Array(repeating: 0, count: missing * Self.classes)
        }
        for place in other.times.indices { times[place].merge(other.times[place]) }
        exemplars.merge(other.exemplars) { own, theirs in
            var both = own
            both.merge(theirs)
            return both
        }
        for place in other.statuses.indices { statuses[place] &+= other.statuses[place] }
    }

    func times(_ time: RuleTime, of rule: Int) -> Histogram {
        guard (0..<ruleCount).contains(rule) else { return Histogram() }
        return times[rule * Self.kinds + time.rawValue]
    }

    func exemplars(_ time: RuleTime, of rule: Int) -> ExemplarSet? {
        guard (0..<ruleCount).contains(rule) else { return nil }
        return exemplars[rule * Self.kinds + time.rawValue]
    }

    /// Responses whose status begins with a digit.
    func count(rule: Int, class number: Int) -> UInt64 {
        guard (0..<ruleCount).contains(rule), (1...Self.classes).contains(number) else { return 0 }
        return statuses[rule * Self.classes + number - 1]
    }
}
