import HTTPWire
import Rules

/// The requests that reach the origin of an enforced rule without an enforced verdict.
///
/// It finds such ways by routing example requests with the code that routes real ones. It does not
/// report rules that only except a part of the enforced rule's requests: same hosts, same methods,
/// some of its paths.
struct Coverage {
    /// One enforced rule, and the ways to bypass it.
    struct Entry {
        let rule: Rule
        var ways: [Problem] = []
        /// There are more rules than were compared.
        var isCut = false
    }

    /// The most ways that are listed for one rule.
    static let waysMax = 16
    /// The most places of the index that are visited for one rule, and the most rules whose
    /// requests are tried.
    static let stepsMax = 1_024
    static let triesMax = 128

    /// The enforced rules that can be bypassed, in their order.
    private(set) var entries: [Entry] = []

    init(_ configuration: GatewayConfiguration) {
        let probe = CoverageProbe(configuration)
        for rule in configuration.rules.rules where rule.mode == .enforce {
            var entry = Entry(rule: rule, ways: Self.ownWays(rule, configuration))
            probe.find(&entry)
            probe.findSpellings(&entry)
            if !entry.ways.isEmpty || entry.isCut { entries.append(entry) }
        }
    }

    var warningCount: Int { entries.reduce(0) { $0 + $1.ways.count } }

    /// A line for each rule and each way.
    var lines: [String] {
        entries.flatMap { entry in
            ["  \(entry.rule.id)"] + entry.ways.map { "    \($0.text)" }
                + (entry.isCut ? ["    not all rules were compared; more may do so"] : [])
        }
    }

    /// The ways that the rule itself leaves open.
    private static func ownWays(_ rule: Rule, _ configuration: GatewayConfiguration) -> [Problem] {
        var ways: [Problem] = []
        func add(_ key: String, found: String, use: String) {
            ways.append(
                Problem(
                    severity: .warning,
                    place: configuration.rulePlaces[rule.index],
                    keyPath: "\(rule.id).\(key)",
                    found: found,
                    use: use
                )
            )
        }
        if rule.rollout.schedule != .fixed(.whole) {
            let found = "\(rule.rollout.text), while all others are forwarded"
            add("rollout", found: found, use: "100% in the end")
        }
        if rule.unsupported == .forward {
            add("unsupported", found: "forward, which anybody can ask for", use: "refuse")
        }
        for token in rule.accept.tokens where rule.accept.takesAssertions {
            let found = "\(token.name), which whoever has the token can send with any request"
            add("accept", found: found, use: "assertion alone in the end")
        }
        if case .require(let token) = rule.unsupported {
            let found = "\(token.name) in place of a signature, which anybody can ask for"
            add("unsupported", found: found, use: "refuse in the end")
        }
        for token in rule.tokens where token.onError == .forward {
            let found = "forward, while \(token.name) can't be checked"
            add("on_error", found: found, use: "refuse")
        }
        if rule.preflight == .forward {
            add("preflight", found: "forward, for OPTIONS that anybody can send", use: "judge")
        }
        if rule.onError == .forward {
            add("on_error", found: "forward, while the store fails", use: "refuse")
        }
        for name in configuration.origin(of: rule)?.keptFields ?? []
        where FieldKindSet.overrides.contains(FieldKind(name: Array(name.utf8))) {
            let found =
                "an origin that gets \(name), by which some servers run another path, host or "
                + "method than the matched one"
            add("origin", found: found, use: "no such keep_fields unless it surely does not do so")
        }
        return ways
    }
}
