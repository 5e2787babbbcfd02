import Encodings
import RequestBinding

/// What an app has to know of the rules to sign its requests without asking: a JSON document that
/// ships with the app. `portcullis plan` writes it.
///
/// The rules stand in their order, and the first that matches a request decides, as in the gateway.
/// Paths are matched as written. Where servers interpret a path in several ways, the gateway also
/// decides by the written path, or refuses. The plan leaves out modes, rollouts and apps: they are
/// policy.
package struct ClientPlan: Sendable {
    /// The version of the document; apps ignore a version that they don't know.
    package static let version = 1

    private let rules: RuleSet
    private let endpoints: String

    /// - endpoints: the path below which the gateway answers itself.
    package init(_ rules: RuleSet, endpoints: String) {
        self.rules = rules
        self.endpoints = endpoints
    }

    /// The document, laid out for people and for version control.
    package var json: [UInt8] {
        var document = JSONWriter(.indented)
        document.object { document in
            document.member("portcullis_plan", Self.version)
            document.member("endpoints", endpoints)
            document.objects("rules", rules.rules.dropLast()) { entry, rule in
                entry.member("name", rule.id)
                Self.write(rule.match, to: &entry)
                Self.write(rule, to: &entry)
            }
            if rules.fallback.mode.verifies {
                document.object("unmatched") { Self.write(rules.fallback, to: &$0) }
            } else {
                document.member("unmatched", nil as String?)
            }
        }
        return document.line
    }

    private static func write(_ match: RouteMatch, to entry: inout JSONWriter) {
        entry.texts("hosts", [match.host.text])
        // Apps need not know that a rule for GET is for HEAD too.
        let methods = match.methods.map { named in
            named.contains("GET") && !named.contains("HEAD") ? named + ["HEAD"] : named
        }
        entry.texts("methods", methods ?? ["*"])
        entry.texts("paths", [match.path.text])
    }

    /// Writes what has to be proven; `sign` is empty where that is nothing.
    private static func write(_ rule: Rule, to entry: inout JSONWriter) {
        guard rule.mode.verifies else { return entry.texts("sign", []) }
        guard rule.accept.takesAssertions else {
            entry.texts("sign", [])
            return writeTokens(rule, to: &entry)
        }
        entry.texts("sign", rule.signing.words)
        var headers: [String] = []
        switch rule.signing {
        case .lines(_, let names):
            entry.member("form", "lines")
            headers = names
        case .content: entry.member("form", "content")
        case .challenge: entry.member("form", "challenge")
        }
        entry.texts("headers", headers)
        entry.member("challenge", rule.challenge.rawValue)
        if rule.challenge != .none, case .jsonPointer(let pointer) = rule.challengeSource {
            entry.member("challenge_pointer", pointer.text)
        }
        switch rule.body {
        case .none: entry.member("digest", "none")
        case .held: entry.member("digest", "held")
        case .streamed: entry.member("digest", "streamed")
        }
        switch rule.counter {
        case .strict: entry.member("counter", "strict")
        case .window(let width): entry.member("counter", width)
        }
        entry.texts("accept", rule.accept.signedNames)
        writeTokens(rule, to: &entry)
        if rule.device != nil { entry.member("device", true) }
        write(rule.fields, to: &entry)
    }

    /// Writes the tokens that the rule names, and what each is for.
    private static func writeTokens(_ rule: Rule, to entry: inout JSONWriter) {
        guard rule.namesTokens else { return }
        entry.objects("tokens", rule.tokens) { member, token in
            member.member("name", token.name)
            switch token.place {
            case .field(let name): member.member("field", String(decoding: name, as: UTF8.self))
            case .cookie(let name): member.member("cookie", String(decoding: name, as: UTF8.self))
            }
            member.texts("for", rule.purposes(of: token))
        }
    }

    /// The names of fields that are not the usual ones.
    private static func write(_ names: FieldNames, to entry: inout JSONWriter) {
        guard names != .standard else { return }
        let keys = ["key_id", "assertion", "challenge", "unsupported"]
        entry.object("fields") { fields in
            for (key, (name, usual)) in zip(keys, zip(names.all, FieldNames.standard.all))
            where name != usual {
                fields.member(key, String(decoding: name, as: UTF8.self))
            }
        }
    }
}

extension Rule {
    /// What the rule takes a token for: in the place of a signature, for devices that can't attest,
    /// beside every other proof, as Google Play's word of an Android phone.
    fileprivate func purposes(of token: TokenProof) -> [String] {
        (accept.tokens.contains(token) ? ["accept"] : [])
            + (unsupported == .require(token) ? ["unsupported"] : [])
            + (also.contains(token) ? ["also"] : [])
            + (integrity?.proof == token ? ["integrity"] : [])
    }
}
