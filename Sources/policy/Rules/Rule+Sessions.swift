import RequestBinding

extension Rule {
    /// The rule of `POST …/sessions`: always enforced, signed in lines with a challenge, for keys
    /// of these apps.
    ///
    /// It is in no rule set, so that its number is that of no rule.
    package static func openingSessions(apps: [String]) -> Rule {
        var demands = Demands(salt: "sessions")
        demands.signing = .lines(.all, headers: [])
        demands.challenge = .required
        // Beside other requests of the app, which may overtake it. The challenge is spent in any
        // case.
        demands.counter = .window(CounterRule.windowRange.upperBound)
        demands.apps = .named(apps)
        return Rule(
            id: "sessions",
            index: .max,
            match: .all,
            goal: .session,
            origin: nil,
            mode: .enforce,
            demands: demands
        )
    }
}
