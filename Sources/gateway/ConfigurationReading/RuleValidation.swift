import HTTPWire
import RequestBinding
import Rules
import Services

/// Turns rules as the file states them into rules: references, defaults, and options without
/// effect.
struct RuleValidation {
    let origins: [String]
    let fallback: StatedRule?
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
        apps: [Stated<AppSettings>],
        _ fallback: StatedRule?,
        _ rules: [StatedRule],
        log: ProblemLog
    ) {
        self.origins = origins
        self.fallback = fallback
        self.log = log
        appIDs = apps.map(\.value.name).filter { !$0.isEmpty }
        // An app that could not be read is reported at its place.
        let areRead = apps.allSatisfy { !$0.value.environments.isEmpty }
        lacksProductionApp =
            areRead && !apps.isEmpty && !apps.contains(where: \.value.isProduction)
        usesDefaultOrigin = rules.contains { !$0.reader.has("origin") && $0.value.mode != .deny }
        originPlaces = Dictionary(zip(origins, origins.indices)) { first, _ in first }
        knownApps = Set(appIDs)
        proofs = RuleProofs([], of: [], bound: [], log: log)
    }

    /// A rule of the list; `nil` when a mandatory part is missing.
    mutating func rule(_ stated: StatedRule, index: Int) -> Rule? {
        let reader = stated.reader
        reader.require("id", use: "id: a stable name, which logs and metrics show")
        reader.require("match", use: "match: { path: /v1/orders }")
        if let id = stated.value.id {
            log.claim(reader.located("id", id), in: &places, use: "another id")
        }
        guard let id = stated.value.id, let match = stated.value.match else {
            // What else is wrong with it.
            _ = rule(stated, id: stated.value.id ?? "", index: index, match: .all)
            return nil
        }
        return rule(stated, id: id, index: index, match: match)
    }

    /// The default.
    func fallbackRule(_ stated: StatedRule, index: Int) -> Rule? {
        rule(stated, id: "default", index: index, match: .all)
    }

    private func rule(
        _ stated: StatedRule,
        id: String,
        index: Int,
        match: RouteMatch
    ) -> Rule? {
        stated.reader.require("mode", use: "mode: \(Self.modes)")
        let origin = origin(of: stated)
        guard let demands = demands(of: stated, id: id), origin != nil || demands.mode == .deny
        else { return nil }
        return Rule(id: id, index: index, match: match, origin: origin, demands: demands)
    }

    private static let modes = Mode.allCases.map(\.rawValue).joined(separator: " | ")

    /// Finds rules that follow one which matches all their requests.
    func findShadows(_ rules: [StatedRule]) {
        var index = CoverIndex()
        for (place, stated) in rules.enumerated() {
            guard let match = stated.located("match", \.match), let value = match.value,
                let first = index.add(value, number: place).map({ rules[$0] })
            else { continue }
            let id = first.value.id.map { " (\($0))" } ?? ""
            log.error(
                match,
                found: "only requests that meet the rule at \(first.reader.place.text)\(id) before",
                use: "this rule before that one, or none"
            )
        }
    }

    /// Finds rules for paths that the gateway answers itself, before it looks for a rule.
    func findUnreached(_ rules: [StatedRule], endpoints: String) {
        let own = [endpoints + "/", endpoints + FrontTrials.suffix]
        for match in rules.compactMap({ $0.located("match", \.match) }) {
            guard let path = match.value?.path.text, let prefix = own.first(where: path.hasPrefix)
            else { continue }
            log.error(
                match,
                found: "\(path), which no request reaches: the gateway answers what is below "
                    + prefix,
                use: "a path outside it, or `endpoints` for another place of the gateway's own"
            )
        }
    }

    /// Finds rules for clients of which none comes: `not_client` leaves none, or no listener has
    /// such addresses.
    ///
    /// - reached: the clients that can come; `nil` for all.
    func findAbsentClients(_ rules: [StatedRule], among reached: ClientPattern?) {
        for match in rules.compactMap({ $0.located("match", \.match) }) {
            guard let clients = match.value?.clients else { continue }
            if clients.isEmpty {
                log.warning(
                    match,
                    found: "no client: not_client has all addresses of client",
                    use: "other networks, or no such rule"
                )
            } else if let reached, !reached.meets(clients) {
                log.warning(
                    match,
                    found: "clients from \(clients.text), and without trusted_proxies only "
                        + "\(reached.text) reach the listeners",
                    use: "trusted_proxies with the proxy that names the clients, if there is one"
                )
            }
        }
    }

    /// The rule's origin, or the default's. A missing origin of the default is reported once,
    /// there.
    private func origin(of stated: StatedRule) -> OriginIndex? {
        let reader = stated.reader
        let isDefault = reader.keyPath == "default"
        let denies = stated.value.mode == .deny
        if denies, reader.has("origin"), !isDefault || !usesDefaultOrigin {
            warnIdle(reader, "origin", mode: .deny)
            return nil
        }
        let own = stated.located("origin", \.origin)
        guard let name = own?.value ?? fallback?.value.origin else {
            // A default that forwards and has no origin is reported once, there.
            let isReported = !isDefault && fallback?.value.mode != .deny
            if !denies, !isReported, !reader.has("origin") {
                reader.require("origin", use: "origin: \(origins.joined(separator: " | "))")
            }
            return nil
        }
        guard let index = originPlaces[name] else {
            guard let own else { return nil }
            log.unknown("origin", own.map { _ in name }, among: origins)
            return nil
        }
        return denies ? nil : OriginIndex(index)
    }

    /// The demands, with defaults for missing parts of the rule; `nil` when they can't be
    /// determined.
    private func demands(of stated: StatedRule, id: String) -> Rule.Demands? {
        let (settings, reader) = (stated.value, stated.reader)
        guard let mode = settings.mode else { return nil }
        var bare = Rule.Demands(salt: id, mode: mode)
        bare.allowEncoded = settings.demands.allowEncoded
        guard mode.verifies else {
            var keys = RuleSettings.verifyingKeys
            // A denied request never reaches an origin, whatever the interpretation of its path.
            if mode == .deny { keys.append("allow_encoded") }
            for key in keys where reader.has(key) { warnIdle(reader, key, mode: mode) }
            return bare
        }
        let apps = settings.takesAssertions ? apps(of: stated) : .production
        if mode == .observe, stated.located("rollout", \.demands.rollout) != nil {
            warnIdle(reader, "rollout", mode: mode)
        }
        bare.rollout = settings.demands.rollout.salted(id)
        bare.also = proofs.also(of: stated)
        guard settings.takesAssertions else {
            bare.accept = proofs.accept(of: stated, signing: bare.signing)
            bare.preflight = preflight(of: stated)
            return bare
        }
        var demands = settings.demands
        demands.mode = mode
        (demands.rollout, demands.also, demands.apps) = (bare.rollout, bare.also, apps)
        demands.signing = signing(of: stated)
        demands.challenge = challenge(of: stated, signing: demands.signing)
        demands.challengeSource = source(of: stated, signing: demands.signing)
        demands.accept = proofs.accept(of: stated, signing: demands.signing)
        demands.body = body(of: stated, signing: demands.signing)
        demands.unsupported = proofs.unsupported(of: stated, demands.accept)
        demands.preflight = preflight(of: stated)
        if let risk = demands.risk {
            // A key's place in this rollout is independent of its place in the rule's own.
            demands.risk?.rollout = risk.rollout.salted("\(id)/risk")
        }
        demands.rate = settings.rate?.rate(of: id)
        demands.integrity = demands.integrity.flatMap {
            proofs.integrity($0, at: reader.path("integrity"))
        }
        if demands.challenge == .none, settings.nextChallenge == true {
            useless(
                reader,
                "next_challenge",
                with: "no challenge asked for",
                use: "challenge: required or optional, or no next_challenge"
            )
        }
        demands.sendsNextChallenge = settings.nextChallenge ?? (demands.challenge == .required)
        checkHeaders(of: stated)
        return demands
    }

    /// The treatment of preflights, which are always OPTIONS.
    private func preflight(of stated: StatedRule) -> PreflightRule {
        guard stated.located("preflight", \.demands.preflight) != nil else { return .judge }
        if let methods = stated.value.match?.methods, !methods.contains("OPTIONS") {
            useless(
                stated.reader,
                "preflight",
                with: "methods that leave OPTIONS out",
                use: "OPTIONS among them, or no preflight"
            )
        }
        return stated.value.demands.preflight
    }

    private func signing(of stated: StatedRule) -> SigningForm {
        let word: String
        let form: SigningForm
        switch stated.value.sign {
        case .parts(let parts): return .lines(parts, headers: stated.value.headers)
        case .content: (word, form) = ("content", .content)
        case .challenge: (word, form) = ("challenge", .challenge)
        }
        if stated.reader.has("headers") {
            useless(
                stated.reader,
                "headers",
                with: "sign: \(word)",
                use: "sign: [method, target, body, challenge], or no headers"
            )
        }
        return form
    }

    /// An assertion can't cover itself. Digest and challenge have their own lines. A signature over
    /// fields that the gateway removes or writes itself would protect nothing.
    private func checkHeaders(of stated: StatedRule) {
        let fields = stated.value.demands.fields
        let own = [fields.assertion, fields.challenge, Array("content-digest".utf8)]
        let origin = stated.value.origin ?? fallback?.value.origin ?? ""
        // From all clients, and as they sent them.
        let kept = (keptFields[origin] ?? []).filter {
            FieldKindSet.overrides.contains(FieldKind(name: Array($0.utf8)))
        }
        for header in stated.located(all: "headers", \.headers) {
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
    private func warnIdle(_ reader: MappingReader, _ key: String, mode: Mode) {
        reader.warning(
            key,
            found: "it with mode: \(mode.rawValue), where it has no effect",
            use: "it when the mode is changed back, or no \(key)"
        )
    }

    /// Reports an option without an effect in its place.
    func useless(_ reader: MappingReader, _ key: String, with reason: String, use: String) {
        reader.error(key, found: "it with \(reason), where it has no effect", use: use)
    }
}
