import HTTPWire
import Rules
import Services

/// Finds the rules that match requests which look like another rule's.
///
/// A request that is tried comes from a client of its rule, where the rule is for some clients.
struct CoverageProbe {
    /// Names that stand for any other host, method and segment. A rule has no good reason to use
    /// them; one that does makes the report shorter.
    private static let otherHost = "any-other-host.invalid"
    private static let otherMethod = "ANY-OTHER"
    private static let otherSegment = "any-other-segment"

    /// The differences between the requests of an open rule and those of the enforced rule.
    private struct Differences {
        var hasOtherHost = false
        var methods: [String] = []
        var hasOtherPath = false
        var hasOtherClient = false
        var isEmpty: Bool {
            !hasOtherHost && methods.isEmpty && !hasOtherPath && !hasOtherClient
        }
    }

    private typealias Spelling = (key: String, path: String)

    private var configuration: GatewayConfiguration
    private let services: ServiceTable
    /// The rules that may be more lenient than another one with their paths, by origin.
    private var lenient: [Int: OverlapIndex] = [:]
    private var origins: [ServerAddress: [Int]] = [:]

    init(_ configuration: GatewayConfiguration) {
        self.configuration = configuration
        services = configuration.ownServices
        let asksMore = configuration.rules.rules.contains {
            !$0.demands.also.isEmpty || $0.rate != nil
        }
        for rule in configuration.rules.rules.dropLast()
        where rule.mode.isOpen || !rule.standInNames.isEmpty || asksMore {
            guard let origin = rule.origin?.rawValue, rule.mode != .deny else { continue }
            lenient[origin, default: OverlapIndex()].add(rule.match.path, number: rule.index)
        }
        for (number, origin) in configuration.origins.enumerated() {
            for server in Set(origin.addresses) { origins[server, default: []].append(number) }
        }
    }

    /// Adds the other rules that forward requests which this rule should stop.
    func find(_ entry: inout Coverage.Entry) {
        let rule = entry.rule
        var numbers: Set<Int> = []
        for origin in sharing(rule).keys {
            guard let index = lenient[origin] else { continue }
            let found = index.overlapping(rule.match.path, stepsMax: Coverage.stepsMax)
            numbers.formUnion(found.numbers)
            if found.isCut { entry.isCut = true }
        }
        // The default comes first: it is the widest way, and the search may be cut.
        var order: [Int] = []
        let fallback = configuration.rules.fallback
        if fallback.mode.isOpen, fallback.origin.flatMap({ sharing(rule)[$0.rawValue] }) != nil {
            order.append(fallback.index)
        }
        order += numbers.sorted()
        var tried = 0
        for number in order {
            let other = configuration.rules.rules[number]
            guard other !== rule, let leniency = Leniency(of: other, beside: rule),
                Self.mayDiffer(other.match, from: rule.match)
            else { continue }
            tried += 1
            guard tried <= Coverage.triesMax, entry.ways.count < Coverage.waysMax else {
                entry.isCut = true
                return
            }
            if let way = way(past: rule, through: other, leniency) { entry.ways.append(way) }
        }
    }

    /// Whether a match has requests that another one does not, by their host, method or client,
    /// whatever their path.
    private static func mayDiffer(_ other: RouteMatch, from mine: RouteMatch) -> Bool {
        if other.path == .all, mine.path != .all { return true }
        guard mine.host.covers(other.host) else { return true }
        guard mine.clients?.covers(other.clients ?? .all) ?? true else { return true }
        guard let named = mine.methods else { return false }
        return other.methods.map { !$0.allSatisfy(named.contains) } ?? true
    }

    /// The origins that share a server with the rule's own origin, with that server; its own first.
    private func sharing(_ rule: Rule) -> [Int: ServerAddress] {
        guard let origin = configuration.origin(of: rule) else { return [:] }
        return origin.addresses.reduce(into: [:]) { found, server in
            for number in origins[server] ?? [] where found[number] == nil {
                found[number] = server
            }
        }
    }

    private func way(past rule: Rule, through other: Rule, _ leniency: Leniency) -> Problem? {
        let differences = differences(of: other, from: rule)
        guard !differences.isEmpty else { return nil }
        var parts: [String] = []
        if differences.hasOtherHost {
            parts.append(
                other.match.host == .any
                    ? "any other host, or none (HTTP/1.0)" : other.match.host.text
            )
        }
        if differences.methods.contains(Self.otherMethod) {
            parts.append("any other method")
        } else if !differences.methods.isEmpty {
            parts.append(differences.methods.joined(separator: ", "))
        }
        if differences.hasOtherPath { parts.append("any other path") }
        if differences.hasOtherClient {
            parts.append("clients other than \(rule.match.clients?.text ?? "any")")
        }
        var found = "\(leniency.found) for \(parts.joined(separator: "; "))"
        if let number = other.origin?.rawValue, other.origin != rule.origin,
            let server = sharing(rule)[number]
        {
            found += ", to \(server.text) as origin \(configuration.origins[number].name)"
        }
        return Problem(
            .warning,
            at: configuration.rulePlaces[other.index],
            "\(other.id).\(leniency.key)",
            found: found,
            use: leniency.use(beside: rule)
        )
    }

    private func differences(of other: Rule, from rule: Rule) -> Differences {
        var found = Differences()
        let (mine, theirs) = (rule.match, other.match)
        let host = Self.host(mine.host)
        let theirHost = Self.host(theirs.host)
        let methods = mine.methods ?? [Self.otherMethod]
        let theirMethods = theirs.methods ?? [Self.otherMethod]
        let client = Self.client(mine, beside: theirs)
        let other = Tried(rule: other, client: Self.client(theirs, beside: mine) ?? client)
        let mineTried = Tried(rule: rule, client: client)
        // This rule does not have to protect a path that belongs to another rule.
        for path in Self.examples(mine.path, theirs.path)
        where methods.contains(where: { decides(mineTried, $0, at: host, path: path) }) {
            if !mine.host.covers(theirs.host) {
                found.hasOtherHost =
                    found.hasOtherHost
                    || (theirMethods + methods).contains {
                        decides(other, $0, at: theirHost, path: path)
                    }
            }
            guard let shared = Self.shared(mine.host, theirs.host) else { continue }
            if let outside = Self.client(theirs, outside: mine) {
                let stranger = Tried(rule: other.rule, client: outside)
                found.hasOtherClient =
                    found.hasOtherClient
                    || methods.contains { decides(stranger, $0, at: shared, path: path) }
            }
            guard let named = mine.methods else { continue }
            for method in theirMethods
            where !named.contains(method) && !found.methods.contains(method) {
                if decides(other, method, at: shared, path: path) { found.methods.append(method) }
            }
        }
        if theirs.path == .all, mine.path != .all,
            let shared = Self.shared(mine.host, theirs.host)
        {
            let deeper = [String](repeating: Self.otherSegment, count: mine.path.segments.count + 1)
            found.hasOtherPath = ["/" + deeper.joined(separator: "/"), "/"].contains { path in
                methods.contains { decides(other, $0, at: shared, path: path) }
            }
        }
        return found
    }

    /// A rule, and the client by which it is tried; `nil` for one without an address.
    private struct Tried {
        let rule: Rule
        let client: IPAddress?
    }

    /// A client of the match, and of the other one, if they share one. `nil` where the match is for
    /// every client.
    private static func client(_ match: RouteMatch, beside other: RouteMatch) -> IPAddress? {
        match.clients?.sample(sharedWith: other.clients ?? .all)
    }

    /// A client of the match that the other one is not for.
    private static func client(_ match: RouteMatch, outside other: RouteMatch) -> IPAddress? {
        other.clients.flatMap { (match.clients ?? .all).sample(outside: $0) }
    }

    private static func examples(_ one: PathPattern, _ other: PathPattern) -> [String] {
        let shortest = one.example(sharedWith: other, one: otherSegment)
        guard one.hasRest, other.hasRest else { return [shortest] }
        return [shortest, (shortest == "/" ? "" : shortest) + "/" + otherSegment]
    }

    private static func shared(_ one: HostPattern, _ other: HostPattern) -> String? {
        if one.covers(other) { return host(other) }
        return other.covers(one) ? host(one) : nil
    }

    /// A host of the pattern, as different from other patterns as possible.
    private static func host(_ pattern: HostPattern) -> String {
        switch pattern {
        case .any: otherHost
        case .exact, .address: pattern.text
        case .under: "any-other" + pattern.text.dropFirst()
        }
    }

    /// Adds the rules that forward other spellings of the rule's path. The configuration says that
    /// its origin does not treat them as this path.
    func findSpellings(_ entry: inout Coverage.Entry) {
        let rule = entry.rule
        let method = rule.match.methods?.first ?? Self.otherMethod
        let (host, origins) = (Self.host(rule.match.host), sharing(rule))
        let client = rule.match.clients?.sample()
        var found: [(other: Rule, leniency: Leniency, spellings: [Spelling])] = []
        for spelling in Self.spellings(of: rule.match.path) {
            guard
                case .rule(let other) = trial(
                    method,
                    "http://\(host)\(spelling.path)",
                    from: client
                ).outcome,
                let origin = other.origin, origins[origin.rawValue] != nil, other !== rule,
                let leniency = Leniency(of: other, beside: rule)
            else { continue }
            if let place = found.firstIndex(where: { $0.other === other }) {
                found[place].spellings.append(spelling)
            } else {
                found.append((other, leniency, [spelling]))
            }
        }
        for (other, leniency, spellings) in found {
            guard entry.ways.count < Coverage.waysMax else {
                entry.isCut = true
                return
            }
            let paths = spellings.map(\.path).joined(separator: ", ")
            let keys = spellings.reduce(into: [String]()) { keys, spelling in
                if !keys.contains(spelling.key) { keys.append(spelling.key) }
            }.joined(separator: ", ")
            entry.ways.append(
                Problem(
                    .warning,
                    at: configuration.rulePlaces[other.index],
                    "\(other.id).\(leniency.key)",
                    found: "\(leniency.found) for \(paths), which some servers take for "
                        + rule.match.path.text,
                    use: "\(leniency.use(beside: rule)), or any for \(keys) under the "
                        + "origin's paths unless it surely does not read them so"
                )
            )
        }
    }

    /// The spellings of the rule's path that it forwards now, to all clients or to those outside
    /// its rollout, and refuses once it enforces for all; `nil` where there are none.
    func forwardedSpellings(of rule: Rule) -> Problem? {
        let isShared = rule.mode == .enforce && !rule.refusesAll
        guard rule.mode == .observe || isShared else { return nil }
        let method = rule.match.methods?.first ?? Self.otherMethod
        let host = Self.host(rule.match.host)
        let client = rule.match.clients?.sample()
        var enforcing: CoverageProbe?
        let paths = Self.spellings(of: rule.match.path).map(\.path).filter { path in
            let url = "http://\(host)\(path)"
            var trial = trial(method, url, from: client)
            // Two rules that observe decide alike, until one of them enforces.
            if case .rule(let other) = trial.outcome, other !== rule, other.mode == .observe {
                let probe = enforcing ?? self.enforcing(rule)
                enforcing = probe
                trial = probe.trial(method, url, from: client)
            }
            guard case .disputed(let dispute) = trial.outcome else { return false }
            return dispute.deciding(\.refusesAll).index == rule.index
        }
        guard !paths.isEmpty else { return nil }
        return Problem(
            .warning,
            at: configuration.rulePlaces[rule.index],
            "\(rule.id).match",
            found: "\(paths.joined(separator: ", ")), which it forwards now"
                + (isShared ? " for clients outside the rollout" : "")
                + ", and answers 400 path-ambiguous once it enforces"
                + (isShared ? " for all" : "")
                + ", since some servers take them for \(rule.match.path.text)",
            use: "only \(rule.match.path.text) in apps, or say under the origin's paths what it "
                + "does not do"
        )
    }

    /// A probe of the configuration in which this rule enforces for all.
    private func enforcing(_ rule: Rule) -> CoverageProbe {
        var probe = self
        probe.configuration.orderedRules = configuration.rules.enforcing(rule)
        return probe
    }

    /// Other spellings of a path of the pattern, each with the key of `paths` that enables its
    /// look-up. None for the escapes: as written they belong to the rule.
    private static func spellings(of pattern: PathPattern) -> [Spelling] {
        let path = pattern.example(sharedWith: pattern, one: otherSegment)
        var found: [Spelling] = [
            ("case", path.uppercased()), ("slashes", "/" + path), ("slashes", path + "/"),
            ("parameters", path + ";x"), ("path_info", path + "/x"),
            ("network_path", "//x" + path), ("script_prefix", "/index.php" + path),
            ("format", path + ".json"), ("index", path + "/index.php"),
            ("punctuation", String(path.map { $0 == "_" || $0 == "-" ? "." : $0 })),
        ]
        // An escape in capitals is the same escape.
        if path.contains("%") { found.removeFirst() }
        return found.filter { key, spelling in
            guard spelling != path else { return false }
            return switch key {
            case "path_info": path.hasSuffix(".php")
            case "network_path", "script_prefix": true
            // The root has no name with another spelling.
            default: !path.hasSuffix("/")
            }
        }
    }

    private func decides(
        _ tried: Tried,
        _ method: String,
        at host: String,
        path: String
    ) -> Bool {
        let trial = trial(method, "http://\(host)\(path)", from: tried.client)
        guard case .rule(let found) = trial.outcome else { return false }
        return found === tried.rule
    }

    private func trial(_ method: String, _ url: String, from client: IPAddress?) -> RequestTrial {
        var sketch = RequestSketch(method: method, url: url)
        sketch.client = client
        return RequestTrial(sketch, configuration, services: services)
    }
}

/// In which way a rule lets requests pass that another, enforced rule would refuse.
enum Leniency {
    /// The rule refuses nothing.
    case unenforced(Mode)
    /// Tokens by these names pass without a signature. They prove nothing about a request.
    case unsigned([String])
    /// Tokens by these names may be absent. The other rule asks for them beside each proof.
    case without([String])
    /// A device may make any number of requests. The other rule has a rate.
    case unlimited

    /// The most lenient way; `nil` where the rule is as strict as the other one.
    init?(of rule: Rule, beside strict: Rule) {
        let standIns = Set(strict.standInNames)
        let unsigned = rule.standInNames.filter { !standIns.contains($0) }
        let asked = Set(rule.demands.also.map(\.name) + rule.standInNames)
        let absent = strict.demands.also.map(\.name).filter { !asked.contains($0) }
        if rule.mode.isOpen {
            self = .unenforced(rule.mode)
        } else if rule.mode == .enforce, strict.accept.takesAssertions, !unsigned.isEmpty {
            self = .unsigned(unsigned)
        } else if rule.mode == .enforce, !absent.isEmpty {
            self = .without(absent)
        } else if rule.mode == .enforce, strict.rate != nil, rule.rate == nil {
            self = .unlimited
        } else {
            return nil
        }
    }

    /// The rule's key that says so.
    var key: String {
        switch self {
        case .unenforced: "mode"
        case .unsigned: "accept"
        case .without: "also"
        case .unlimited: "rate"
        }
    }

    /// What the key says, before the requests that it is about.
    var found: String {
        switch self {
        case .unenforced(let mode): mode.rawValue
        case .unsigned(let names): names.joined(separator: " or ") + " without a signature,"
        case .without(let names): "no " + names.joined(separator: ", ")
        case .unlimited: "no rate"
        }
    }

    /// What to say instead, beside this rule.
    func use(beside rule: Rule) -> String {
        switch self {
        case .unenforced: "enforce or deny"
        case .unsigned: "assertion alone where its requests matter as those of \(rule.id)"
        case .without: "what \(rule.id) asks for where its requests matter as much"
        case .unlimited: "a rate where its requests cost as much as those of \(rule.id)"
        }
    }
}

extension Rule {
    /// The names of the tokens that pass in the place of a signature.
    var standInNames: [String] {
        var names = accept.tokens.map(\.name)
        if case .require(let token) = unsupported { names.append(token.name) }
        return names
    }
}
