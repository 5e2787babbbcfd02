package import Rules

/// Which rule a request meets, for programs that send what the rule asks for.
package enum RuleLookup: Sendable {
    /// The rule that judges it.
    case rule(Rule)
    /// It is answered before any rule, or by the gateway itself, for this reason.
    case noRule(String)
}

extension GatewayConfiguration {
    /// Looks a request up by the code that routes real ones.
    package func rule(for sketch: RequestSketch) -> RuleLookup {
        switch RequestTrial(sketch, self).outcome {
        case .rule(let rule): .rule(rule)
        case .service: .noRule("one of the gateway's own endpoints")
        case .lastHop: .noRule("Max-Forwards allows no more hops")
        case .refused(_, let reason): .noRule(reason)
        }
    }
}
