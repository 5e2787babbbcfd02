package import HTTPWire

extension RuleSet {
    /// What a head leads to. The gateway and `explain` ask the same function.
    package enum Destination: Sendable {
        /// The request is judged, forwarded or denied as this rule says.
        case rule(Rule)
        /// The request meets this rule and is answered as malformed.
        case unroutable(Rule, Malformed.Reason)
    }

    /// Finds the rule of a request, and whether the request can be routed at all.
    ///
    /// Checked in this order: what ``route(method:host:view:)`` checks, then that `Connection`
    /// names no field that the rule signs or reads. Such a field would end here, after it was
    /// verified.
    ///
    /// - Parameters:
    ///   - head: a head that was read.
    ///   - octets: the bytes that it was read from.
    ///   - view: storage for the target's readings; the target is read into it.
    /// - Returns: the rule in any case, for the log.
    package func destination(
        of head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        view: inout TargetView
    ) -> Destination {
        view.read(head, octets)
        let route = route(
            method: octets.extracting(head.methodRange),
            host: octets.extracting(head.authority),
            view: &view
        )
        switch route {
        case .rule(let rule):
            guard !rule.isNominated(by: head, octets) else {
                return .unroutable(rule, .connectionNomination)
            }
            return .rule(rule)
        case .malformed(let reason, let rule): return .unroutable(rule, reason)
        // Nobody can say for which of the rules the origin will take the path.
        case .disputed(let rule, _): return .unroutable(rule, .pathAmbiguous)
        }
    }
}

extension Rule {
    /// Whether Connection names a field that the rule signs or reads.
    fileprivate func isNominated(
        by head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> Bool {
        guard mode != .off, head.fields.connection.nominations > 0 else { return false }
        for field in head.fields.fields
        where field.isNominated && guardedFields.contains(octets, field.name) {
            return true
        }
        return false
    }
}
