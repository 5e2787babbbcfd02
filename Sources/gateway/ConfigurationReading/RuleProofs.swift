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
    func also(of draft: RuleDraft) -> [TokenProof] {
        let accepted = Set((draft.accept ?? []).map(\.value))
        return (draft.also ?? []).compactMap { name in
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
    func findUnused(_ rules: [Rule], _ drafts: [ProofDraft], enrolling: [TokenProof]) {
        let used = Set((rules.flatMap(\.tokens) + enrolling).map(\.name))
        for draft in drafts where !used.contains(draft.name.value) {
            log.warning(
                draft.name,
                found: "a proof that no rule names",
                use: bound.contains(draft.name.value)
                    ? "it in a rule's or an app's integrity, or no such proof"
                    : "it in a rule's accept, also or unsupported, or no such proof"
            )
        }
    }

    /// The proof whose tokens carry Google Play's verdict: the named one, or the only one.
    func integrity(_ draft: IntegrityRuleDraft) -> IntegrityRule? {
        if let name = draft.proof {
            guard !bound.contains(name.value) else {
                return tokens.first { $0.name == name.value }.map(draft.rule)
            }
            log.error(
                name,
                found: "\(name.value), which is no proof of kind: play-integrity",
                use: bound.isEmpty ? Self.integrityUse : bound.joined(separator: ", ")
            )
            return nil
        }
        guard bound.count == 1 else {
            log.error(
                draft,
                found: bound.isEmpty
                    ? "it without a proof of kind: play-integrity"
                    : "it without proof, while there are \(bound.count) of kind: play-integrity",
                use: bound.isEmpty ? Self.integrityUse : "proof: \(bound.joined(separator: " | "))"
            )
            return nil
        }
        return tokens.first { $0.name == bound[0] }.map(draft.rule)
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
    func accept(of draft: RuleDraft, signing: SigningForm) -> AcceptRule {
        guard let stated = draft.accept else { return .assertion }
        let signed = ["assertion", "session"]
        let words = stated.map(\.value)
        let named = stated.filter { !signed.contains($0.value) }
        let tokens = named.compactMap { token($0, beside: signed) }
        let takesAssertions = words.contains("assertion")
        if words.contains("session"), !takesAssertions, let first = stated.first {
            log.error(
                first.place,
                draft.reader.path("accept"),
                found: "it without assertion",
                use: "[assertion] or [assertion, session]: a session is opened with an assertion"
            )
        }
        if !takesAssertions, named.count == words.count { checkIdle(draft) }
        return AcceptRule(
            assertions: takesAssertions,
            sessions: takesAssertions && words.contains("session")
                && coversSession(draft, signing),
            tokens: tokens
        )
    }

    /// The keys that say how a request is signed, and those about its key: the guard counts keys,
    /// and `on_error` is about their store. They mean nothing where only tokens are taken.
    private static let signingKeys = [
        "apps", "sign", "headers", "challenge", "counter", "body", "unsupported", "risk", "device",
        "integrity", "fields", "next_challenge", "guard", "on_error",
    ]

    private func checkIdle(_ draft: RuleDraft) {
        let reader = draft.reader
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
    private func coversSession(_ draft: RuleDraft, _ signing: SigningForm) -> Bool {
        guard let stated = draft.accept?.first(where: { $0.value == "session" }) else {
            return false
        }
        let found: String
        switch signing {
        case .lines(let parts, _) where parts.isSuperset(of: [.method, .target, .body]): return true
        case .lines: found = "session, while sign leaves out method, target or body"
        case .content: found = "session, while sign is content"
        case .challenge: found = "session, while sign is challenge"
        }
        log.error(
            stated.place,
            draft.reader.path("accept"),
            found: found,
            use: "sign: [method, target, body], with challenge or without; or accept: [assertion]"
        )
        return false
    }

    /// What stands in for a proof where the device can't attest.
    func unsupported(of draft: RuleDraft, _ accept: AcceptRule) -> UnsupportedRule {
        switch draft.unsupported {
        case nil: return .refuse
        case .rule(let rule): return rule.value
        case .require(let name):
            guard let token = token(name) else { return .refuse }
            let isAccepted = accept.tokens.contains(token)
            if isAccepted || draft.also?.contains(where: { $0.value == token.name }) == true {
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

/// The contents of a rule's `unsupported`.
enum UnsupportedDraft {
    case rule(Located<UnsupportedRule>)
    case require(Located<String>)

    private enum Word: String, CaseIterable {
        case refuse, forward
    }

    private static let keys = Keys<Self> {
        Key("require").means("The token that such a request needs.")
            .mandatory("require: the name of a proof")
    }

    /// `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        guard let node = reader.node(key) else { return nil }
        guard case .mapping = node.content else {
            guard let word = reader.word(key, Word.self) else { return nil }
            let rule: UnsupportedRule =
                switch word.value {
                case .refuse: .refuse
                case .forward: .forward
                }
            self = .rule(Located(value: rule, place: word.place, keyPath: word.keyPath))
            return
        }
        guard let inner = reader.inner(key, Self.keys) else { return nil }
        guard let name = inner.value("require", use: "the name of a proof", { $0 }) else {
            return nil
        }
        self = .require(name)
    }
}

extension RuleDraft {
    /// Whether a request may prove itself by an assertion.
    var takesAssertions: Bool { accept?.contains { $0.value == "assertion" } ?? true }
}

extension [ProofDraft] {
    /// The complete proofs; those with an error, which was reported, are left out.
    func validated(_ files: NamedFiles, hasStore: Bool) -> [ProofSettings] {
        enumerated().compactMap { index, draft in
            draft.proof(index: index).flatMap { draft.validated($0, files, hasStore: hasStore) }
        }
    }
}
