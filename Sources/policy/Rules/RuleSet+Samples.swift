import HTTPWire

extension RuleSet {
    /// An interpretation in which every request of a rule belongs to another rule. `nil` when some
    /// requests match only this rule, or match another rule as written.
    ///
    /// It tries one request for each method: the rule's own path, with a segment that no rule names
    /// instead of each `*`, from one of its clients.
    package func rival(of rule: Rule) -> Interpretation? {
        var rival: Interpretation?
        for method in rule.match.methods ?? ["-"] {
            guard let found = self.rival(of: rule, method) else { return nil }
            rival = rival ?? found
        }
        return rival
    }

    /// Requests of a match, one for each method, and the rules that match them as written.
    package func found(by match: RouteMatch) -> [(request: String, rule: Rule)] {
        let host = match.host.sample
        let start = match.path.sample == "/" ? "" : match.path.sample
        // Deeper than the pattern's own segments: a rule for just those does not match the rest.
        let path = match.path.hasRest ? "\(start)/-0-" : match.path.sample
        let client = match.clients?.sample()
        return (match.methods ?? ["-"]).map { method in
            let bytes = Array(path.utf8)
            var view = TargetView()
            view.read(bytes.span, 0..<bytes.count)
            let route = route(
                method: Array(method.utf8).span,
                host: Array(host.utf8).span,
                from: client,
                view: &view
            )
            let request =
                [match.methods == nil ? "*" : method, host.isEmpty ? "*" : host, path]
                + (client.map { ["from", $0.text] } ?? [])
            switch route {
            case .rule(let rule), .malformed(_, let rule):
                return (request.joined(separator: " "), rule)
            case .disputed(let dispute): return (request.joined(separator: " "), dispute.found)
            }
        }
    }

    private func rival(of rule: Rule, _ method: String) -> Interpretation? {
        let method = Array(method.utf8)
        let host = Array(rule.match.host.sample.utf8)
        let path = Array(rule.match.path.sample.utf8)
        let client = rule.match.clients?.sample()
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        guard
            case .disputed(let dispute) = route(
                method: method.span,
                host: host.span,
                from: client,
                view: &view
            ), dispute.found === rule
        else { return nil }
        let interpretations = readings(
            method: method.span,
            host: host.span,
            from: client,
            view: &view
        )
        return interpretations.first { other in
            // What only some routers do is no reason to refuse a rule that refuses nothing.
            let isOfRouters = !other.interpretation.isDisjoint(with: .ofRouters)
            return other.isRival && !(isOfRouters && other.rule.mode.isOpen)
        }
    }
}

extension HostPattern {
    /// A host that the pattern matches; empty for any.
    fileprivate var sample: String {
        switch self {
        case .any: ""
        case .under(let name): "x." + String(decoding: name, as: UTF8.self)
        case .exact, .address: text
        }
    }
}

extension PathPattern {
    fileprivate var sample: String {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map { part in
            part == "*" ? "-0-" : String(part)
        }
        let path = (parts.last == "**" ? parts.dropLast() : parts[...]).joined(separator: "/")
        return path.isEmpty ? "/" : path
    }
}
