import Rules

/// What the file says of a rule's `rate`.
struct RateSettings: Declared, Equatable {
    private(set) var pace: RateRule.Pace?
    private(set) var burst: Int?

    /// The most requests at once.
    private static let burstMax = 100_000

    static let keys = Keys<Self> {
        Key("key", orNone: \.pace, requests)
            .means("Requests that one device may make in a time; then 429.")
            .mandatory("key: 10/s")
        Key("burst", orNone: \.burst, .count(1...burstMax))
            .means("Requests at once, after a pause.", otherwise: "as many as key says")
    }.checked { reader, settings in
        guard let pace = settings.pace, let burst = settings.burst,
            burst > RateRule.burstMax(pace)
        else { return }
        reader.error(
            "burst",
            found: "\(burst), which \(pace.text) refills in more than "
                + "\(RateRule.refillDaysMax) days",
            use: "\(RateRule.burstMax(pace)) at most, or another key"
        )
    }

    /// The rate of a rule with this id.
    func rate(of id: String) -> RateRule? {
        pace.map { RateRule($0, burst: burst ?? $0.count, of: id) }
    }

    private static let requests = ValueForm<RateRule.Pace>(
        { reader, key in
            reader.value(key, use: "requests in a second, minute, hour or day, 1/d…10000/s") {
                RateRule.Pace(text: $0)
            }
        },
        text: { $0.text }
    )
}

extension RateRule.Pace {
    /// Reads `10/s`.
    fileprivate init?(text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let count = Int(digits: parts[0]),
            let period = Period.allCases.first(where: { $0.unit == parts[1] })
        else { return nil }
        self.init(count, per: period)
    }
}
