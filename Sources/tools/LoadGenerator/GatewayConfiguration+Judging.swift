package import ConfigurationReading
package import Rules

extension GatewayConfiguration {
    /// The rule that verifies a request with a key of this app.
    ///
    /// - Throws: that no rule judges the request, that nothing is verified, that the rule does not
    ///   admit the app's keys.
    package func judgingRule(
        for sketch: RequestSketch,
        keysOf appID: String
    ) throws(LoadError) -> Rule {
        let rule: Rule
        switch self.rule(for: sketch) {
        case .noRule(let reason):
            throw LoadError("no rule judges this request: \(reason)")
        case .rule(let found): rule = found
        }
        guard rule.mode != .off else {
            throw LoadError("rule \(rule.id) is off for this request: nothing is verified")
        }
        if let app = apps.first(where: { $0.id == appID }), !rule.apps.admits(app) {
            throw LoadError("rule \(rule.id) admits no keys of \(appID); give it apps: [\(appID)]")
        }
        return rule
    }
}
