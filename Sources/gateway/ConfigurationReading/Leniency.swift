import Rules

/// In which way a rule lets requests pass that another, enforced rule would refuse.
enum Leniency {
    /// The rule refuses nothing.
    case unenforced(Mode)
    /// Tokens by these names pass without a signature. They prove nothing about a request.
    case unsigned([String])
    /// Tokens by these names may be absent. The other rule asks for them beside each proof.
    case without([String])

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
        }
    }

    /// What the key says, before the requests that it is about.
    var found: String {
        switch self {
        case .unenforced(let mode): mode.rawValue
        case .unsigned(let names): names.joined(separator: " or ") + " without a signature,"
        case .without(let names): "no " + names.joined(separator: ", ")
        }
    }

    /// What to say instead, beside this rule.
    func use(beside rule: Rule) -> String {
        switch self {
        case .unenforced: "enforce or deny"
        case .unsigned: "assertion alone where its requests matter as those of \(rule.id)"
        case .without: "what \(rule.id) asks for where its requests matter as much"
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
