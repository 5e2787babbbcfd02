import AppAttest
import HTTPWire
import Rules
import Services

/// The report of `portcullis check`.
package struct Check: Sendable {
    let loaded: LoadedConfiguration
    /// The user's name of the file.
    let file: String
    /// Those of the load, and that no command reaches the gateway.
    let warnings: [Problem]
    /// `nil` for a refused configuration.
    let coverage: Coverage?

    /// Reports on the configuration that was loaded from a file, under the user's name of the file.
    package init(_ loaded: LoadedConfiguration, file: String) {
        (self.loaded, self.file) = (loaded, file)
        let orders = loaded.orders.enforcing
        coverage = loaded.configuration.map { Coverage($0.ordered(by: orders)) }
        // Without any admin listener the summary says so: that is asked for.
        let silence = loaded.configuration.flatMap { $0.admin.isEmpty ? nil : $0.commandProblem }
        warnings = loaded.warnings + [silence].compactMap(\.self)
    }

    /// 0 when the configuration can be served, 1 when not. Warnings don't change it.
    package var exitStatus: Int32 { loaded.configuration == nil ? 1 : 0 }

    /// The errors; without any, the meaning of the configuration, and then its warnings and what is
    /// assumed, which a reader must not have to look for above.
    package var text: String {
        let assumed = loaded.assumptions.map(\.text)
        guard let configuration = loaded.configuration, let coverage else {
            let end = "\(file): refused, \(Self.count(loaded.errors.count, "error"))"
            return Self.text(loaded.problems.map(\.text) + assumed + [end])
        }
        var lines = Self.summary(configuration, loaded.orders)
        let enforced = configuration.ordered(by: loaded.orders.enforcing)
        lines += Self.lines(coverage, enforced) + warnings.map(\.text) + assumed
        let count = warnings.count + coverage.warningCount
        let more = assumed.isEmpty ? "" : ", \(assumed.count) assumed"
        return Self.text(lines + ["\(file): ok, \(Self.count(count, "warning"))\(more)"])
    }

    private static func text(_ lines: [String]) -> String {
        lines.map { $0 + "\n" }.joined()
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    private static func summary(
        _ configuration: GatewayConfiguration,
        _ orders: RolloutOrders
    ) -> [String] {
        var lines: [String] = []
        for listener in configuration.listeners {
            let version = listener.tls?.terms.minimumVersion.rawValue
            let tls = version.map { " TLS \($0) and later" } ?? ""
            let asks = listener.decides.map { ", decides as \($0.text)" } ?? ""
            lines.append("listen   \(listener.address.text)\(tls)\(asks)")
        }
        if configuration.servesPlan {
            lines.append(
                "plan     \(configuration.endpointsPath)/plan: anybody reads the hosts, paths and "
                    + "names of all rules"
            )
        }
        if !configuration.probes.all.isEmpty {
            let probes = configuration.probes.all.map { "\($0.path) (\($0.key))" }
            lines.append("probes   \(probes.joined(separator: ", ")), on every listener")
        }
        if configuration.admin.isEmpty {
            lines.append("admin    none: no command reaches the gateway")
        }
        for admin in configuration.admin {
            lines.append("admin    \(admin.address.text): \(admin.servesText)")
        }
        for origin in configuration.origins {
            let servers = origin.servers.map(\.text).joined(separator: ", ")
            let paths = origin.paths.settingText.map { "; paths \($0)" } ?? ""
            lines.append("origin   \(origin.name): \(servers)\(paths)")
        }
        for app in configuration.apps {
            lines.append("app      \(app.id): \(app.environmentNames.joined(separator: ", "))")
        }
        if let text = configuration.spillText { lines.append("held     \(text)") }
        lines.append("rules    the first that matches decides")
        for (rule, place) in zip(configuration.rules.rules, configuration.rulePlaces) {
            let isDefault = rule === configuration.rules.fallback
            let match = isDefault ? "everything else" : rule.match.text
            let origin = configuration.origin(of: rule).map { " → \($0.name)" } ?? ""
            lines.append("  \(rule.id): \(match)\(origin), \(rule.modeText)  (\(place.text))")
            if let text = orders.standing(of: rule).orderText { lines.append("    \(text)") }
            lines += rule.demandLines.map { "    \($0)" }
            lines += unusualKeys(rule, configuration.apps).map { "    \($0)" }
        }
        return lines + strictCost(configuration.rules.rules)
    }

    /// The cost of strict counters for apps, once for all rules with one.
    private static func strictCost(_ rules: [Rule]) -> [String] {
        let number = rules.count { $0.mode.verifies && $0.counter == .strict }
        guard number > 0 else { return [] }
        let subject = number == 1 ? "1 rule is" : "\(number) rules are"
        return [
            """
            counter  \(subject) strict: an app sends its requests one after the other, those to \
            other rules too (eight of 2s take 16s); { window: 64 } admits each counter once, too
            """
        ]
    }

    /// The admitted keys of a rule that Apple's production environment has not attested.
    private static func unusualKeys(_ rule: Rule, _ apps: [AppPolicy]) -> [String] {
        guard rule.readsKeys else { return [] }
        let admitted = apps.filter(rule.apps.admits)
        let kinds = [
            ("test", admitted.filter(\.isTest)),
            ("development", admitted.filter { $0.environments.contains(.development) }),
        ]
        return kinds.compactMap { kind, apps in
            guard !apps.isEmpty else { return nil }
            return "admits \(kind) keys of \(apps.map(\.id).joined(separator: ", "))"
        }
    }

    /// The requests that the rules leave to the default, which are easily more than intended, and
    /// those that bypass an enforced rule.
    private static func lines(_ coverage: Coverage, _ configuration: GatewayConfiguration)
        -> [String]
    {
        let fate =
            switch configuration.rules.fallback.mode {
            case .off: "forwarded without being verified"
            case .observe: "verified and forwarded whatever the verdict"
            case .enforce: "verified and refused unless they pass"
            case .deny: "answered 404 and not forwarded"
            }
        var lines = ["coverage requests that meet no rule are \(fate)"]
        if !coverage.spellings.isEmpty {
            lines.append(
                "coverage other spellings of the paths of rules that don't enforce for all"
            )
            lines += coverage.spellings.map { "  \($0.text)" }
        }
        guard configuration.rules.rules.contains(where: { $0.mode == .enforce }) else {
            return lines + ["coverage no rule is enforced"]
        }
        if coverage.entries.isEmpty {
            lines.append("coverage no way past an enforced rule was found")
        } else {
            lines.append(
                "coverage what reaches an enforced rule's origin without an enforced verdict"
            )
            lines += coverage.lines
        }
        return lines
    }
}

/// The requests that reach the origin of an enforced rule without an enforced verdict.
///
/// It finds such ways by routing example requests with the code that routes real ones. It does not
/// report rules that only except a part of the enforced rule's requests: same hosts, same methods,
/// some of its paths.
struct Coverage: Sendable {
    /// One enforced rule, and the ways to bypass it.
    struct Entry: Sendable {
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

    /// The most rules whose spellings are listed.
    static let spellingsMax = 16

    /// The enforced rules that can be bypassed, in their order.
    private(set) var entries: [Entry] = []
    /// What rules that don't enforce for all forward now, and refuse once they do.
    let spellings: [Problem]

    init(_ configuration: GatewayConfiguration) {
        let probe = CoverageProbe(configuration)
        spellings = Array(
            configuration.rules.rules.dropLast().lazy
                .compactMap { probe.forwardedSpellings(of: $0) }
                .prefix(Self.spellingsMax)
        )
        for rule in configuration.rules.rules where rule.mode == .enforce {
            var entry = Entry(rule: rule, ways: Self.ownWays(rule, configuration))
            probe.find(&entry)
            probe.findSpellings(&entry)
            if !entry.ways.isEmpty || entry.isCut { entries.append(entry) }
        }
    }

    var warningCount: Int { entries.reduce(spellings.count) { $0 + $1.ways.count } }

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
                    .warning,
                    at: configuration.rulePlaces[rule.index],
                    "\(rule.id).\(key)",
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
