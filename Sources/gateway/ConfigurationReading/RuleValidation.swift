import HTTPWire
import RequestBinding
import Rules
import Services

/// Turns drafts of rules into rules: references, defaults, and options without effect.
struct RuleValidation {
    let origins: [String]
    let fallback: RuleDraft?
    let log: ProblemLog
    let appIDs: [String]
    let knownApps: Set<String>
    /// The proofs that rules may name.
    var proofs: RuleProofs
    /// The `keep_fields` of each origin, by its name.
    var keptFields: [String: [String]] = [:]
    /// Whether a rule that names no apps admits none.
    let lacksProductionApp: Bool
    /// Whether a rule has no origin of its own and so uses that of the default.
    private let usesDefaultOrigin: Bool
    private let originPlaces: [String: Int]
    private var places: [String: Problem.Place] = [:]

    init(
        origins: [String],
        apps: [AppDraft],
        _ fallback: RuleDraft?,
        _ rules: [RuleDraft],
        log: ProblemLog
    ) {
        self.origins = origins
        self.fallback = fallback
        self.log = log
        appIDs = apps.compactMap(\.id?.value)
        // An app that could not be read is reported at its place.
        let areRead = apps.allSatisfy { $0.environments?.isEmpty == false }
        lacksProductionApp = areRead && !apps.isEmpty && !apps.contains(where: \.isProduction)
        usesDefaultOrigin = rules.contains { !$0.reader.has("origin") && $0.mode?.value != .deny }
        originPlaces = Dictionary(zip(origins, origins.indices)) { first, _ in first }
        knownApps = Set(appIDs)
        proofs = RuleProofs([], of: [], bound: [], log: log)
    }

    /// A rule of the list; `nil` when a mandatory part is missing.
    mutating func rule(_ draft: RuleDraft, index: Int) -> Rule? {
        draft.reader.require("id", use: "id: a stable name, which logs and metrics show")
        draft.reader.require("match", use: "match: { path: /v1/orders }")
        draft.reader.require("mode", use: "mode: \(Self.modes)")
        if let id = draft.id { log.claim(id, in: &places, use: "another id") }
        let origin = origin(of: draft)
        let demands = demands(of: draft, id: draft.id?.value ?? "")
        guard let id = draft.id, let match = draft.match, let mode = draft.mode, let demands,
            origin != nil || mode.value == .deny
        else { return nil }
        return Rule(
            id: id.value,
            index: index,
            match: match.value,
            origin: origin,
            mode: mode.value,
            allowEncoded: allowance(of: draft),
            demands: demands
        )
    }

    /// The default.
    func fallbackRule(_ draft: RuleDraft, index: Int) -> Rule? {
        draft.reader.require("mode", use: "mode: \(Self.modes)")
        let origin = origin(of: draft)
        guard let demands = demands(of: draft, id: "default"), let mode = draft.mode,
            origin != nil || mode.value == .deny
        else { return nil }
        return Rule(
            id: "default",
            index: index,
            match: .all,
            origin: origin,
            mode: mode.value,
            allowEncoded: allowance(of: draft),
            demands: demands
        )
    }

    private static let modes = Mode.allCases.map(\.rawValue).joined(separator: " | ")

    /// Finds rules that follow one which matches all their requests.
    func findShadows(_ drafts: [RuleDraft]) {
        var index = CoverIndex()
        for (place, draft) in drafts.enumerated() {
            guard let match = draft.match,
                let first = index.add(match.value, number: place).map({ drafts[$0] })
            else { continue }
            let id = first.id.map { " (\($0.value))" } ?? ""
            log.error(
                match,
                found: "only requests that meet the rule at \(first.reader.place.text)\(id) before",
                use: "this rule before that one, or none"
            )
        }
    }

    /// Finds rules for paths that the gateway answers itself, before it looks for a rule.
    func findUnreached(_ drafts: [RuleDraft], endpoints: String) {
        let own = [endpoints + "/", endpoints + FrontTrials.suffix]
        for match in drafts.compactMap(\.match) {
            let path = match.value.path.text
            guard let prefix = own.first(where: path.hasPrefix) else { continue }
            log.error(
                match,
                found: "\(path), which no request reaches: the gateway answers what is below "
                    + prefix,
                use: "a path outside it, or `endpoints` for another place of the gateway's own"
            )
        }
    }

    /// The rule's origin, or the default's. A missing origin of the default is reported once,
    /// there.
    private func origin(of draft: RuleDraft) -> OriginIndex? {
        let isDefault = draft.reader.keyPath == "default"
        let denies = draft.mode?.value == .deny
        if denies, draft.reader.has("origin"), !isDefault || !usesDefaultOrigin {
            warnIdle(draft, "origin", .deny)
            return nil
        }
        guard let name = draft.origin ?? fallback?.origin else {
            // A default that forwards and has no origin is reported once, there.
            let isReported = !isDefault && fallback?.mode?.value != .deny
            if !denies, !isReported, !draft.reader.has("origin") {
                draft.reader.require("origin", use: "origin: \(origins.joined(separator: " | "))")
            }
            return nil
        }
        guard let index = originPlaces[name.value] else {
            guard draft.origin != nil else { return nil }
            log.unknown("origin", name, among: origins)
            return nil
        }
        return denies ? nil : OriginIndex(index)
    }

    private func allowance(of draft: RuleDraft) -> PathConstructs {
        (draft.allowEncoded ?? []).reduce(into: []) {
            $0.insert(PathConstructs(rawValue: $1.value))
        }
    }

    /// The demands, with defaults for missing parts of the draft; `nil` when they can't be
    /// determined.
    private func demands(of draft: RuleDraft, id: String) -> Rule.Demands? {
        var demands = Rule.Demands(salt: id)
        guard let mode = draft.mode else { return nil }
        guard mode.value.verifies else {
            var keys = RuleDraft.verifyingKeys
            // A denied request never reaches an origin, whatever the interpretation of its path.
            if mode.value == .deny { keys.append("allow_encoded") }
            for key in keys where draft.reader.has(key) { warnIdle(draft, key, mode.value) }
            return demands
        }
        if draft.takesAssertions { demands.apps = apps(of: draft) }
        if let rollout = draft.rollout {
            if mode.value == .observe { warnIdle(draft, "rollout", mode.value) }
            let value = rollout.value
            demands.rollout = Rollout(value.schedule, by: value.subject, salt: value.salt ?? id)
        }
        demands.also = proofs.also(of: draft)
        guard draft.takesAssertions else {
            demands.signing = .lines([], headers: [])
            demands.accept = proofs.accept(of: draft, signing: demands.signing)
            demands.preflight = preflight(of: draft)
            return demands
        }
        demands.signing = signing(of: draft)
        demands.challenge = challenge(of: draft, signing: demands.signing)
        demands.challengeSource = source(of: draft, signing: demands.signing)
        demands.counter = draft.counter?.value ?? .standard
        demands.accept = proofs.accept(of: draft, signing: demands.signing)
        demands.body = body(of: draft, signing: demands.signing)
        demands.onError = draft.onError?.value ?? .refuse
        demands.unsupported = proofs.unsupported(of: draft, demands.accept)
        demands.preflight = preflight(of: draft)
        demands.device = device(of: draft)
        demands.risk = draft.risk?.rule(ofRule: id)
        demands.integrity = draft.integrity.flatMap { proofs.integrity($0) }
        demands.fallback = draft.fallback
        demands.fields = draft.fields?.value ?? .standard
        if demands.challenge == .none, draft.nextChallenge?.value == true {
            useless(
                draft,
                "next_challenge",
                with: "no challenge asked for",
                use: "challenge: required or optional, or no next_challenge"
            )
        }
        demands.sendsNextChallenge = draft.nextChallenge?.value ?? (demands.challenge == .required)
        checkHeaders(of: draft, fields: demands.fields)
        return demands
    }

    /// The treatment of preflights, which are always OPTIONS.
    private func preflight(of draft: RuleDraft) -> PreflightRule {
        guard let stated = draft.preflight?.value else { return .judge }
        if let methods = draft.match?.value.methods, !methods.contains("OPTIONS") {
            useless(
                draft,
                "preflight",
                with: "methods that leave OPTIONS out",
                use: "OPTIONS among them, or no preflight"
            )
        }
        return stated
    }

    private func device(of draft: RuleDraft) -> DeviceRule? {
        guard let stated = draft.device?.value, let refused = stated.refused else { return nil }
        return DeviceRule(
            refused: refused,
            onError: stated.onError?.value ?? .refuse,
            timeout: stated.timeout?.value ?? DeviceRule.defaultTimeout
        )
    }

    private func signing(of draft: RuleDraft) -> SigningForm {
        let headers = draft.headers?.map(\.value) ?? []
        switch draft.sign?.value ?? .parts(.all) {
        case .parts(let parts): return .lines(parts, headers: headers)
        case .content: return withoutHeaders(draft, "content", .content)
        case .challenge: return withoutHeaders(draft, "challenge", .challenge)
        }
    }

    private func withoutHeaders(
        _ draft: RuleDraft,
        _ name: String,
        _ form: SigningForm
    ) -> SigningForm {
        if draft.reader.has("headers") {
            useless(
                draft,
                "headers",
                with: "sign: \(name)",
                use: "sign: [method, target, body, challenge], or no headers"
            )
        }
        return form
    }

    /// An assertion can't cover itself. Digest and challenge have their own lines. A signature over
    /// fields that the gateway removes or writes itself would protect nothing.
    private func checkHeaders(of draft: RuleDraft, fields: FieldNames) {
        let own = [fields.assertion, fields.challenge, Array("content-digest".utf8)]
        let origin = (draft.origin ?? fallback?.origin)?.value ?? ""
        // From all clients, and as they sent them.
        let kept = (keptFields[origin] ?? []).filter {
            FieldKindSet.overrides.contains(FieldKind(name: Array($0.utf8)))
        }
        for header in draft.headers ?? [] {
            let name = Array(header.value.utf8)
            let reason: String
            if own.contains(name) {
                reason = "this one is the assertion or has its own line"
            } else if FieldKindSet.neverAsSent.contains(FieldKind(name: name)),
                !kept.contains(header.value)
            {
                reason = "the origin does not get this one as the client sent it"
            } else {
                warnUnsteady(header)
                continue
            }
            log.error(header, found: header.value, use: "other fields: \(reason)")
        }
    }

    /// Signed fields that may change between signing and arrival, with the reason. They are no
    /// errors, since an app that controls the whole request can sign them.
    private static let unsteadyFields = [
        "accept-encoding": "HTTP stacks write after the app has signed, and CDNs rewrite",
        "accept-language": "HTTP stacks write after the app has signed",
        "cache-control": "HTTP stacks write for their cache after the app has signed",
        "cookie": "the app's cookie jar changes by itself, and a proxy may cut",
        "date": "an HTTP stack or a proxy may write after the app has signed",
        "if-modified-since": "HTTP stacks write for their cache after the app has signed",
        "if-none-match": "HTTP stacks write for their cache after the app has signed",
        "pragma": "HTTP stacks write for their cache after the app has signed",
        "user-agent": "HTTP stacks write after the app has signed, and CDNs rewrite",
    ]

    private func warnUnsteady(_ header: Located<String>) {
        guard let reason = Self.unsteadyFields[header.value] else { return }
        log.warning(
            header,
            found: "\(header.value), which \(reason)",
            use: "a field that the app sets itself, or the request is refused as signature-mismatch"
        )
    }

    /// Warns of an option that the rule's mode leaves without effect.
    ///
    /// It is no error: changing `enforce` to `observe` or `off` is the operator's emergency exit,
    /// and changing this one word must be enough.
    private func warnIdle(_ draft: RuleDraft, _ key: String, _ mode: Mode) {
        let reader = draft.reader
        reader.warning(
            key,
            found: "it with mode: \(mode.rawValue), where it has no effect",
            use: "it when the mode is changed back, or no \(key)"
        )
    }

    /// Reports an option without an effect in its place.
    func useless(_ draft: RuleDraft, _ key: String, with reason: String, use: String) {
        let reader = draft.reader
        reader.error(key, found: "it with \(reason), where it has no effect", use: use)
    }
}
