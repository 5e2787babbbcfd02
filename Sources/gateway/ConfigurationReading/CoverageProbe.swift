import HTTPWire
import Rules
import Services

/// Asks a configuration's rules which of them take requests that look like another rule's.
struct CoverageProbe {
    /// Names that stand for any other host, method and segment. No rule has good reason to name
    /// them; one that does makes the report shorter.
    private static let otherHost = "any-other-host.invalid"
    private static let otherMethod = "ANY-OTHER"
    private static let otherSegment = "any-other-segment"

    /// How requests that an open rule takes differ from those of the enforced rule.
    private struct Differences {
        var hasOtherHost = false
        var methods: [String] = []
        var hasOtherPath = false
        var isEmpty: Bool { !hasOtherHost && methods.isEmpty && !hasOtherPath }
    }

    private let configuration: GatewayConfiguration
    private let services: ServiceTable
    /// By origin, the open rules with their paths.
    private var open: [Int: OverlapIndex] = [:]
    /// By the address of a server, the origins that have it.
    private var origins: [ServerAddress: [Int]] = [:]

    init(_ configuration: GatewayConfiguration) {
        self.configuration = configuration
        services = configuration.ownServices
        for rule in configuration.rules.rules.dropLast() where rule.mode.isOpen {
            guard let origin = rule.origin?.rawValue else { continue }
            open[origin, default: OverlapIndex()].add(rule.match.path, number: rule.index)
        }
        for (number, origin) in configuration.origins.enumerated() {
            for server in Set(origin.addresses) { origins[server, default: []].append(number) }
        }
    }

    /// Adds the other rules that forward what the rule is there to stop.
    func find(_ entry: inout Coverage.Entry) {
        let rule = entry.rule
        var numbers: Set<Int> = []
        for origin in sharing(rule).keys {
            guard let index = open[origin] else { continue }
            let found = index.overlapping(rule.match.path, stepsMax: Coverage.stepsMax)
            numbers.formUnion(found.numbers)
            if found.isCut { entry.isCut = true }
        }
        // The default goes first: it is the widest way, and the search may be cut.
        var order: [Int] = []
        let fallback = configuration.rules.fallback
        if fallback.mode.isOpen, fallback.origin.flatMap({ sharing(rule)[$0.rawValue] }) != nil {
            order.append(fallback.index)
        }
        order += numbers.sorted()
        var tried = 0
        for number in order {
            let other = configuration.rules.rules[number]
            guard Self.mayDiffer(other.match, from: rule.match) else { continue }
            tried += 1
            guard tried <= Coverage.triesMax, entry.ways.count < Coverage.waysMax else {
                entry.isCut = true
                return
            }
            if let way = way(past: rule, through: other) { entry.ways.append(way) }
        }
    }

    /// Whether a match takes requests that another one does not, by their host or method, or
    /// whatever their path is.
    private static func mayDiffer(_ other: RouteMatch, from mine: RouteMatch) -> Bool {
        if other.path == .all, mine.path != .all { return true }
        guard mine.host.covers(other.host) else { return true }
        guard let named = mine.methods else { return false }
        return other.methods.map { !$0.allSatisfy(named.contains) } ?? true
    }

    /// The origins that have a server of the rule's own origin, with that server; its own first.
    private func sharing(_ rule: Rule) -> [Int: ServerAddress] {
        guard let origin = configuration.origin(of: rule) else { return [:] }
        return origin.addresses.reduce(into: [:]) { found, server in
            for number in origins[server] ?? [] where found[number] == nil {
                found[number] = server
            }
        }
    }

    private func way(past rule: Rule, through other: Rule) -> Problem? {
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
        var found = "\(other.mode.rawValue) for \(parts.joined(separator: "; "))"
        if let number = other.origin?.rawValue, other.origin != rule.origin,
            let server = sharing(rule)[number]
        {
            found += ", to \(server.text) as origin \(configuration.origins[number].name)"
        }
        return Problem(
            severity: .warning,
            place: configuration.rulePlaces[other.index],
            keyPath: "\(other.id).mode",
            found: found,
            use: "enforce or deny"
        )
    }

    private func differences(of other: Rule, from rule: Rule) -> Differences {
        var found = Differences()
        let (mine, theirs) = (rule.match, other.match)
        let host = Self.host(mine.host)
        let theirHost = Self.host(theirs.host)
        let methods = mine.methods ?? [Self.otherMethod]
        let theirMethods = theirs.methods ?? [Self.otherMethod]
        // A path that another rule takes from this one is not this rule's to guard.
        for path in Self.examples(mine.path, theirs.path)
        where methods.contains(where: { decides(rule, $0, host, path) }) {
            if !mine.host.covers(theirs.host) {
                found.hasOtherHost =
                    found.hasOtherHost
                    || (theirMethods + methods).contains { decides(other, $0, theirHost, path) }
            }
            guard let named = mine.methods, let shared = Self.shared(mine.host, theirs.host) else {
                continue
            }
            for method in theirMethods
            where !named.contains(method) && !found.methods.contains(method) {
                if decides(other, method, shared, path) { found.methods.append(method) }
            }
        }
        if theirs.path == .all, mine.path != .all,
            let shared = Self.shared(mine.host, theirs.host)
        {
            let deeper = [String](
                repeating: Self.otherSegment,
                count: mine.path.segments.count + 1
            )
            found.hasOtherPath = ["/" + deeper.joined(separator: "/"), "/"].contains { path in
                methods.contains { decides(other, $0, shared, path) }
            }
        }
        return found
    }

    /// Paths that both patterns have.
    private static func examples(_ one: PathPattern, _ other: PathPattern) -> [String] {
        let shortest = one.example(sharedWith: other, one: otherSegment)
        guard one.hasRest, other.hasRest else { return [shortest] }
        return [shortest, (shortest == "/" ? "" : shortest) + "/" + otherSegment]
    }

    /// A host that both patterns have.
    private static func shared(_ one: HostPattern, _ other: HostPattern) -> String? {
        if one.covers(other) { return host(other) }
        return other.covers(one) ? host(one) : nil
    }

    /// A host of the pattern, as far from other patterns as there is one.
    private static func host(_ pattern: HostPattern) -> String {
        switch pattern {
        case .any: otherHost
        case .exact, .address: pattern.text
        case .under: "any-other" + pattern.text.dropFirst()
        }
    }

    private func decides(_ rule: Rule, _ method: String, _ host: String, _ path: String) -> Bool {
        let sketch = RequestSketch(method: method, url: "http://\(host)\(path)")
        guard case .rule(let found) = RequestTrial(sketch, configuration, services).outcome else {
            return false
        }
        return found === rule
    }
}
