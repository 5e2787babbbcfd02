package import HTTPWire

/// All rules of a configuration, in the order of the files, and the default behind them.
///
/// Immutable and shared by all lanes. A reload makes a new one; requests under way keep theirs.
package final class RuleSet: Sendable {
    /// What a request's host, method and path lead to.
    package enum Route: Sendable {
        case rule(Rule)
        /// The path can be read in two ways, and they lead to different rules: exact, then merged.
        ///
        /// Such a request is refused: whatever the origin does with its path, one of the two
        /// rules would be passed by.
        case disputed(Rule, Rule)
    }

    /// The rules by their number; the last is the default, which every request meets.
    package let rules: [Rule]
    private let exact: RouteIndex
    private let merged: RouteIndex

    /// `nil` when the rules name more than 63 methods together, or when a rule's number is not its
    /// place.
    ///
    /// - Parameters:
    ///   - rules: in order, numbered from 0.
    ///   - fallback: the default, numbered behind them.
    package init?(_ rules: [Rule], default fallback: Rule) {
        let matches = rules.map(\.match)
        guard let exact = RouteIndex(matches, .exact), let merged = RouteIndex(matches, .merged)
        else { return nil }
        self.exact = exact
        self.merged = merged
        self.rules = rules + [fallback]
        guard self.rules.indices.allSatisfy({ self.rules[$0].index == $0 }) else { return nil }
    }

    /// The rule for requests that no other rule is for.
    package var fallback: Rule { rules[rules.count - 1] }

    /// The first rule that the request meets.
    ///
    /// The method is as in the request line; the host is that of the target or of the `Host` field,
    /// with a port or without.
    package func route(
        method: Span<UInt8>,
        host: Span<UInt8>,
        view: borrowing TargetView
    ) -> Route {
        let fallback = rules.count - 1
        let found = exact.first(method: method, host: host, view: view, .exact) ?? fallback
        if view.findings.isDisjoint(with: .readingDependent) { return .rule(rules[found]) }
        let other = merged.first(method: method, host: host, view: view, .merged) ?? fallback
        return found == other ? .rule(rules[found]) : .disputed(rules[found], rules[other])
    }
}
