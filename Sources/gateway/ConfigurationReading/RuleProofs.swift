import RequestBinding
import Rules

/// The proofs that a rule names: `accept`, `also` and `unsupported`.
struct RuleProofs {
    private let tokens: [TokenProof]
    /// The names of the section `proofs`, also of those that could not be read.
    private let names: [String]
    /// The names of those whose tokens have to be bound to a key's signature.
    private let bound: [String]
    private let log: ProblemLog

    init(_ tokens: [TokenProof], of names: [String], bound: [String], log: ProblemLog) {
        self.tokens = tokens
        self.names = names
        self.bound = bound
        self.log = log
    }

    /// The tokens beside every proof. An unknown name is a problem; one that could not be read was
    /// reported.
    func also(of rule: StatedRule) -> [TokenProof] {
        let accepted = Set(rule.value.accept)
        return rule.located(all: "also", \.also).compactMap { name in
            guard let token = token(name) else { return nil }
            if accepted.contains(token.name) {
                log.error(
                    name,
                    found: "\(token.name), which accept takes as a proof by itself",
                    use: "it in one of the two"
                )
            }
            return token
        }
    }

    /// Reports the proofs that no rule names.
    ///
    /// - enrolling: those that enrolments of apps name.
    func findUnused(_ rules: [Rule], _ proofs: [StatedProof], enrolling: [TokenProof]) {
        let used = Set((rules.flatMap(\.tokens) + enrolling).map(\.name))
        for proof in proofs where !used.contains(proof.name.value) {
            log.warning(
                proof.name,
                found: "a proof that no rule names",
                use: bound.contains(proof.name.value)
                    ? "it in a rule's or an app's integrity, or no such proof"
                    : "it in a rule's accept, also or unsupported, or no such proof"
            )
        }
    }

    /// The proof whose tokens carry Google Play's verdict: the named one, or the only one.
    ///
    /// - rule: as it was read, so that its proof has a name at most.
    func integrity(_ rule: IntegrityRule, at keyPath: String) -> IntegrityRule? {
        let name = rule.proof.name
        guard name.isEmpty else {
            guard !bound.contains(name) else {
                return tokens.first { $0.name == name }.map(rule.resolved)
            }
            log.error(
                log.located("\(keyPath).proof", name),
                found: "\(name), which is no proof of kind: play-integrity",
                use: bound.isEmpty ? Self.integrityUse : bound.joined(separator: ", ")
            )
            return nil
        }
        guard bound.count == 1 else {
            log.error(
                log.located(keyPath, rule),
                found: bound.isEmpty
                    ? "it without a proof of kind: play-integrity"
                    : "it without proof, while there are \(bound.count) of kind: play-integrity",
                use: bound.isEmpty ? Self.integrityUse : "proof: \(bound.joined(separator: " | "))"
            )
            return nil
        }
        return tokens.first { $0.name == bound[0] }.map(rule.resolved)
    }

    private static let integrityUse =
        "proofs: { play: { kind: play-integrity, service_account: play.json } } beside rules"

    private func token(_ name: Located<String>, beside others: [String] = []) -> TokenProof? {
        guard !bound.contains(name.value) else {
            log.error(
                name,
                found: "\(name.value), whose tokens say nothing without the signature of a key",
                use: "integrity: { proof: \(name.value) } in the rule"
            )
            return nil
        }
        if let token = tokens.first(where: { $0.name == name.value }) { return token }
        guard !names.contains(name.value) else { return nil }
        let allowed = others + names.filter { !bound.contains($0) }
        let use = allowed.isEmpty ? "a name of the section proofs" : allowed.joined(separator: ", ")
        log.error(
            name,
            found: SourceNode.quoted(name.value),
            use: Suggestion.use(use, for: name.value, among: allowed)
        )
        return nil
    }

    /// The proofs of which one is enough.
    func accept(of rule: StatedRule, signing: SigningForm) -> AcceptRule {
        let words = rule.value.accept
        let signed = ["assertion", "session"]
        let named = rule.located(all: "accept", \.accept).filter { !signed.contains($0.value) }
        let tokens = named.compactMap { token($0, beside: signed) }
        let takesAssertions = rule.value.takesAssertions
        if words.contains("session"), !takesAssertions {
            rule.reader.error(
                "accept",
                found: "it without assertion",
                use: "[assertion] or [assertion, session]: a session is opened with an assertion"
            )
        }
        if !takesAssertions, named.count == words.count { checkIdle(rule.reader) }
        return AcceptRule(
            assertions: takesAssertions,
            sessions: takesAssertions && words.contains("session")
                && coversSession(rule, signing),
            tokens: tokens
        )
    }

    /// The keys that say how a request is signed, and those about its key: the guard counts keys,
    /// and `on_error` is about their store. They mean nothing where only tokens are taken.
    private static let signingKeys = RuleSettings.verifyingKeys.filter {
        !["rollout", "accept", "also", "preflight"].contains($0)
    }

    private func checkIdle(_ reader: MappingReader) {
        for key in Self.signingKeys where reader.has(key) {
            reader.error(
                key,
                found: "it with an accept that takes only tokens, where it has no effect",
                use: "accept with assertion, or no \(key)"
            )
        }
    }

    /// Whether sessions may be accepted. Their code covers lines. An attacker who sees a request
    /// could change parts that the lines omit.
    private func coversSession(_ rule: StatedRule, _ signing: SigningForm) -> Bool {
        let found: String
        switch signing {
        case .lines(let parts, _) where parts.isSuperset(of: [.method, .target, .body]): return true
        case .lines: found = "session, while sign leaves out method, target or body"
        case .content: found = "session, while sign is content"
        case .challenge: found = "session, while sign is challenge"
        }
        rule.reader.error(
            "accept",
            found: found,
            use: "sign: [method, target, body], with challenge or without; or accept: [assertion]"
        )
        return false
    }

    /// What stands in for a proof where the device can't attest.
    func unsupported(of rule: StatedRule, _ accept: AcceptRule) -> UnsupportedRule {
        switch rule.value.unsupported {
        case .rule(let unsupported): return unsupported
        case .require(let text):
            let name = log.located(rule.reader.path("unsupported.require"), text)
            guard let token = token(name) else { return .refuse }
            let isAccepted = accept.tokens.contains(token)
            if isAccepted || rule.value.also.contains(token.name) {
                let key = isAccepted ? "accept takes from" : "also asks of"
                log.error(
                    name,
                    found: "\(token.name), which \(key) every client",
                    use: "it in one of the two"
                )
            }
            return .require(token)
        }
    }
}
