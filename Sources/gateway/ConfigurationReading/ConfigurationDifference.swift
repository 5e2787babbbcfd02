import AppAttest
import HTTPWire
package import Rules
import Signatures
import Verification

/// The effect of a changed configuration on endpoints: the report of `portcullis diff`.
///
/// Rules are the same when they have the same id. It compares the effective modes, rollouts,
/// demands, apps and origins. So a change of an app or of an origin's servers is shown at each rule
/// that it concerns. The keys that differ, with their values, come after the rules.
package struct ConfigurationDifference: Sendable {
    /// A rule that was added, removed or changed, with a line for each change.
    package struct Endpoint: Equatable, Sendable {
        package let id: String
        let changes: [EndpointChange]
        /// The order of an operator; `nil` where the file decides.
        let order: String?

        package var lines: [String] { changes.map(\.text) + [order].compactMap(\.self) }
    }

    /// In the order of the new rules; removed ones come last.
    package let endpoints: [Endpoint]
    /// In the order of the keys; without those of rules.
    package let settings: [SettingChange]

    /// - orders: the orders of operators, beside the new configuration.
    package init(
        from old: GatewayConfiguration,
        to new: GatewayConfiguration,
        orders: RolloutOrders = RolloutOrders()
    ) {
        let before = Dictionary(
            old.fileRules.rules.map { ($0.id, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        var endpoints = new.fileRules.rules.compactMap { rule -> Endpoint? in
            let changes: [EndpointChange]
            if let was = before[rule.id] {
                let (was, now) = (Side(rule: was, of: old), Side(rule: rule, of: new))
                changes = Self.changes(from: was, to: now) + Self.moves(rule, from: old, to: new)
            } else {
                changes = [
                    .init(.added, "added: \(rule.match.text), \(rule.modeText)"),
                    .init(.moved, "its requests met \(Self.met(rule, in: old)) before"),
                ]
            }
            guard !changes.isEmpty else { return nil }
            let order = orders.standing(of: rule).orderText
            return Endpoint(id: rule.id, changes: changes, order: order)
        }
        let after = Set(new.fileRules.rules.map(\.id))
        endpoints += old.fileRules.rules.filter { !after.contains($0.id) }.map { rule in
            let changes: [EndpointChange] = [
                .init(.removed, "removed: \(rule.match.text), \(rule.modeText)"),
                .init(.moved, "its requests meet \(Self.met(rule, in: new)) now"),
            ]
            return Endpoint(id: rule.id, changes: changes, order: nil)
        }
        self.endpoints = endpoints
        settings = old.changes(to: new)
    }

    package var text: String {
        let rules =
            endpoints.isEmpty
            ? "no endpoint changes\n"
            : endpoints.map { endpoint in
                endpoint.id + "\n" + endpoint.lines.map { "  \($0)\n" }.joined()
            }.joined()
        guard !settings.isEmpty else { return rules }
        return rules + "settings\n" + settings.map { "  \($0.text)\n" }.joined()
    }

    /// A rule in its configuration.
    private struct Side {
        let rule: Rule
        let of: GatewayConfiguration
    }

    private static func changes(from before: Side, to now: Side) -> [EndpointChange] {
        let (was, old, rule, new) = (before.rule, before.of, now.rule, now.of)
        let rows: [(what: EndpointChange.What, from: String, to: String)] = [
            (.requests, was.match.text, rule.match.text),
            (.mode, was.mode.rawValue, rule.mode.rawValue),
            (.rollout, rollout(was), rollout(rule)),
            (.apps, apps(was, old), apps(rule, new)),
            (.origin, origin(was, old), origin(rule, new)),
            (.allowEncoded, was.allowEncoded.namesText, rule.allowEncoded.namesText),
        ]
        var lines = rows.filter { $0.from != $0.to }.map { row in
            EndpointChange(row.what, from: row.from, to: row.to)
        }
        // The demands of a rule that verifies nothing in one of the two are no change.
        guard was.mode.verifies, rule.mode.verifies else { return lines }
        let (asked, asks) = (was.demandLines, rule.demandLines)
        lines += asked.filter { !asks.contains($0) }.map { .init(.demand, from: $0) }
        lines += asks.filter { !asked.contains($0) }.map { .init(.demand, to: $0) }
        return lines + enrolments(from: before, to: now)
    }

    /// A rule's own requests that another rule answers, since the order of the rules or another
    /// rule's match has changed.
    private static func moves(
        _ rule: Rule,
        from old: GatewayConfiguration,
        to new: GatewayConfiguration
    ) -> [EndpointChange] {
        guard rule !== new.fileRules.fallback else { return [] }
        let found = zip(old.fileRules.found(by: rule.match), new.fileRules.found(by: rule.match))
        return found.filter { $0.rule.id != $1.rule.id }.map { was, now in
            let met = "requests such as \(was.request) met \(name(was.rule))"
            return EndpointChange(.moved, "\(met), and meet \(name(now.rule)) now")
        }
    }

    /// The rules that match the requests of a rule's match, each once.
    private static func met(_ rule: Rule, in configuration: GatewayConfiguration) -> String {
        var names: [String] = []
        for found in configuration.fileRules.found(by: rule.match) {
            let name = name(found.rule)
            if !names.contains(name) { names.append(name) }
        }
        return names.joined(separator: ", ")
    }

    private static func name(_ rule: Rule) -> String { "\(rule.id) (\(rule.modeText))" }

    /// Whom the rule refuses. Another salt refuses others at the same share.
    private static func rollout(_ rule: Rule) -> String {
        guard rule.mode == .enforce else { return "nobody refused by it" }
        let rollout = rule.rollout
        guard rollout.dependsOnBucket, rollout.salt != rule.id else { return rollout.text }
        return "\(rollout.text), salt \(SourceNode.quoted(rollout.salt))"
    }

    /// The apps whose keys are admitted, and what their requests have to show.
    private static func apps(_ rule: Rule, _ configuration: GatewayConfiguration) -> String {
        guard rule.readsKeys else { return "not looked at" }
        let ids = configuration.apps.filter(rule.apps.admits).map { app in
            let words = app.environmentNames + app.requestDemands
            return "\(app.id) (\(words.joined(separator: ", ")))"
        }
        return ids.isEmpty ? "none" : ids.joined(separator: ", ")
    }

    /// Apps whose keys are admitted in both, and have to show something else when they enrol.
    private static func enrolments(from before: Side, to now: Side) -> [EndpointChange] {
        guard before.rule.readsKeys, now.rule.readsKeys else { return [] }
        let apps = Dictionary(
            before.of.apps.filter(before.rule.apps.admits).map { ($0.id, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        let changed = now.of.apps.filter(now.rule.apps.admits).filter { app in
            apps[app.id].map { !$0.enrolsLike(app) } ?? false
        }
        return changed.map { .init(.enrolment, "other demands when keys of \($0.id) enrol") }
    }

    private static func origin(_ rule: Rule, _ configuration: GatewayConfiguration) -> String {
        guard let origin = configuration.origin(of: rule) else { return "none" }
        return "\(origin.name) (\(origin.servers.map(\.text).joined(separator: ", ")))"
    }
}

/// One change of a rule.
struct EndpointChange: Hashable, Sendable {
    /// What differs.
    enum What: String, CaseIterable, Sendable {
        case added, removed, requests, mode, rollout, apps, origin
        case allowEncoded = "allow_encoded"
        /// What requests must carry.
        case demand
        /// What keys must show when they enrol.
        case enrolment
        /// Requests that another rule answers.
        case moved
    }

    let what: What
    /// `nil` where there was none, or where the text alone says it.
    let from: String?
    let to: String?
    /// The change in words.
    let text: String

    init(_ what: What, _ text: String) {
        (self.what, self.text, from, to) = (what, text, nil, nil)
    }

    init(_ what: What, from: String, to: String) {
        (self.what, self.from, self.to) = (what, from, to)
        text = "\(what.rawValue): \(from) → \(to)"
    }

    /// Something that is gone.
    init(_ what: What, from: String) {
        (self.what, self.from, to, text) = (what, from, nil, "no longer: \(from)")
    }

    /// Something that is new.
    init(_ what: What, to: String) {
        (self.what, from, self.to, text) = (what, nil, to, "now: \(to)")
    }
}

extension AppPolicy {
    /// The environments whose keys it admits.
    var environmentNames: [String] {
        environments.map(\.rawValue).sorted() + (isTest ? ["test"] : [])
    }

    /// What is asked of the build and the age of a key with each request, in words.
    fileprivate var requestDemands: [String] {
        var texts: [String] = []
        if let categories = builds.categories {
            texts.append("category \(categories.map(\.name).sorted().joined(separator: " or "))")
        }
        if let versions = builds.bundleVersions {
            texts.append("version \(versions.sorted().joined(separator: " or "))")
        }
        if !builds.acceptsAbsentCategory { texts.append("no older system") }
        if let days = android?.settings.keyDaysMax { texts.append("keys of \(days)d at most") }
        return texts
    }

    /// Whether the same is asked when a key is enrolled.
    fileprivate func enrolsLike(_ other: AppPolicy) -> Bool {
        var (mine, theirs) = (android?.settings, other.android?.settings)
        // Of a proof the number may change alone. The age is asked with each request.
        let integrity = (mine?.integrity?.text, theirs?.integrity?.text)
        mine?.integrity = nil
        theirs?.integrity = nil
        mine?.keyDaysMax = nil
        theirs?.keyDaysMax = nil
        return integrity.0 == integrity.1 && mine == theirs
            && clientDataHash == other.clientDataHash && platform == other.platform
            && receipt == other.receipt
            && testRoots.map(\.der) == other.testRoots.map(\.der)
    }
}
