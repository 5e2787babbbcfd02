import AppAttest
import HTTPWire
import OutboundCalls
import Proxy
import RequestBinding
import Rules
import Tokens
import Verification

/// A configuration in its file's words: typed, all optional, each value with its place.
struct ConfigurationDraft {
    /// The place of the rules.
    enum RulesDraft {
        case none
        case list([RuleDraft])
        case folder(Located<String>)
    }

    static let keys = [
        "listen", "admin", "event_loops", "origins", "apps", "store", "challenges", "sessions",
        "enrolment", "apple", "verdict", "google", "trusted_proxies", "client_address", "traces",
        "timeouts", "limits", "log", "process", "endpoints", "plan", "probes", "spill_folder",
        "hooks", "proofs", "default", "rules",
    ]

    let folder: String
    let reader: MappingReader
    let listeners: [ListenDraft]
    let admin: [AdminDraft]
    let loops: EventLoopCount
    let origins: [OriginDraft]
    let apps: [AppDraft]
    let store: StoreDraft
    private(set) var challenges = ChallengeSettings()
    private(set) var sessions = SessionTable.Limits()
    private(set) var enrolment = EnrolmentAdmission.Settings()
    let apple: Stated<AppleSettings>?
    let verdict: VerdictDraft
    let google: Stated<GoogleSettings>?
    let trustedProxies: [Located<IPNetwork>]
    let addressSource: Located<ClientAddress.Source>?
    let traces: TraceRule
    private(set) var timeouts = Timeouts()
    private(set) var limits = ProxyLimits()
    private(set) var log = LogSettings()
    private(set) var process = ProcessSettings()
    private(set) var hooks = HookSettings()
    let proofs: [ProofDraft]
    let endpoints: Located<String>?
    /// Whether apps get the plan from the gateway.
    let plan: Located<OnOff>?
    let probes: ProbeDraft
    let spillFolder: Located<String>?
    let fallback: RuleDraft?
    let rules: RulesDraft

    init?(_ root: SourceNode, folder: String, log: ProblemLog) {
        guard let reader = MappingReader(root, "", keys: Self.keys, log: log) else { return nil }
        self.folder = folder
        self.reader = reader
        log.folder = folder
        listeners = ListenDraft.all(reader)
        admin = AdminDraft.all(reader)
        let loops = reader.value("event_loops", use: "auto | 1…256", words: ["auto"]) {
            text -> EventLoopCount? in
            if text == "auto" { return .perCore }
            let number = MappingReader.digits(text)
            return number.flatMap { (1...256).contains($0) ? .fixed($0) : nil }
        }
        self.loops = loops?.value ?? .perCore
        timeouts.read(reader.node("timeouts"), "timeouts", log)
        origins = OriginDraft.all(reader, timeouts)
        apps = (reader.list("apps", of: "apps: - id: …") ?? []).compactMap { node, keyPath in
            AppDraft(node, keyPath, log: log)
        }
        store = StoreDraft(reader, folder: folder)
        challenges.read(reader.node("challenges"), "challenges", log)
        sessions.read(reader.node("sessions"), "sessions", log)
        enrolment.read(reader.node("enrolment"), "enrolment", log)
        apple = Stated(reader.node("apple"), "apple", over: AppleSettings(), log)
        verdict = VerdictDraft(reader.node("verdict"), log: log)
        google = Stated(reader.node("google"), "google", over: GoogleSettings(), log)
        trustedProxies =
            reader.list(
                "trusted_proxies",
                of: "networks such as 10.0.0.0/8, no bit set after the prefix"
            ) { IPNetwork($0) } ?? []
        addressSource = reader.value(
            "client_address",
            use: "x-forwarded-for | forwarded",
            words: ["x-forwarded-for", "forwarded"]
        ) { ["x-forwarded-for": .xForwardedFor, "forwarded": .forwarded][$0.lowercased()] }
        traces = reader.word("traces", TraceRule.self)?.value ?? .carry
        limits.read(reader.node("limits"), "limits", log)
        self.log.read(reader.node("log"), "log", log)
        process.read(reader.node("process"), "process", log)
        hooks.read(reader.node("hooks"), "hooks", log)
        proofs = ProofDraft.all(reader)
        endpoints = reader.value(
            "endpoints",
            use: "a path of plain segments without a slash at its end",
            Self.plainPath
        )
        plan = reader.word("plan")
        probes = ProbeDraft(reader.node("probes"), log: log)
        spillFolder = reader.value("spill_folder", use: "a folder's path") { text in
            text.isEmpty ? nil : FilePath.joined(folder, text)
        }
        fallback = reader.node("default").flatMap {
            RuleDraft($0, "default", isDefault: true, log: log)
        }
        rules = Self.rules(reader, folder: folder)
    }

    /// A host name or an IP address, with or without a port.
    static func hostName(_ text: String) -> String? {
        if HostPattern(text: text) != nil, !text.contains("*") { return text }
        return ServerAddress(text: text, allowsPortZero: false).flatMap { $0.isUnix ? nil : text }
    }

    static func plainPath(_ text: String) -> String? {
        guard let pattern = try? PathPattern(text), !pattern.hasRest, text != "/",
            !text.contains("*"), !text.contains("%"), !text.contains(";"), !text.hasSuffix("/")
        else { return nil }
        return text
    }

    private static func rules(_ reader: MappingReader, folder: String) -> RulesDraft {
        guard let node = reader.node("rules") else { return .none }
        reader.log.record?.text("rules", use: "a folder of rule files, or a list of rules")
        switch node.content {
        case .text(let text) where !text.isEmpty:
            let path = FilePath.joined(folder, text)
            return .folder(Located(value: path, place: node.place, keyPath: "rules"))
        case .list(let nodes):
            return .list(
                nodes.enumerated().compactMap { index, node in
                    let keyPath = RuleDraft.keyPath(of: node, at: "rules[\(index)]", reader.log)
                    return RuleDraft(node, keyPath, isDefault: false, log: reader.log)
                }
            )
        case .text, .nothing, .mapping:
            let use = "a folder of rule files, or a list of rules"
            reader.log.error(node.place, "rules", found: node.found, use: use)
            return .none
        }
    }
}

// Listeners at which other proxies ask for decisions.
extension ConfigurationDraft {
    /// How a listener's clients ask; `nil` where their requests go to origins.
    func decides(_ listener: ListenDraft) -> DecisionQuestion? {
        guard let decides = listener.decides else {
            if let content = listener.content {
                reader.log.error(
                    content,
                    found: "it without decides",
                    use: "decides beside it, or neither: a request's own content always comes"
                )
            }
            return nil
        }
        if trustedProxies.isEmpty {
            reader.log.error(
                decides,
                found: "it without trusted_proxies, so that nobody may ask",
                use: "trusted_proxies with the addresses of the proxies that ask"
            )
        }
        if let proxyProtocol = listener.proxyProtocol, proxyProtocol.value {
            reader.log.error(
                proxyProtocol,
                found: "it beside decides, where the peer itself has to be a trusted proxy",
                use: "one of the two"
            )
        }
        if decides.value == .extAuthzGRPC, let http2 = listener.http2, http2.value == .off {
            reader.log.error(
                http2,
                found: "off beside decides: ext_authz_grpc, which needs HTTP/2",
                use: "on, which is the default there, or leave it out"
            )
        }
        return DecisionQuestion(decides.value, content: listener.content?.value ?? .none)
    }

    /// Signed content can be verified only where the asking proxy sends it. Otherwise the
    /// application would execute content that was not judged.
    ///
    /// A listener without `decides` gets all content. Where no listener gets it, such a rule is an
    /// error. Where one does, the others refuse the rule's requests, which is worth a warning.
    func validateDecisions(_ rules: some Sequence<(RuleDraft, Rule)>) {
        let blind = listeners.filter { $0.decides != nil && $0.content?.value != .whole }
        let signing = rules.filter { $0.1.mode.verifies && $0.1.signing.coversBody }
        guard let first = blind.first?.decides, !signing.isEmpty else { return }
        guard blind.count == listeners.count else {
            for decides in blind.compactMap(\.decides) { warn(decides, signing.map(\.1)) }
            return
        }
        for (draft, _) in signing {
            reader.log.error(
                draft.sign?.place ?? draft.reader.place,
                draft.sign?.keyPath ?? draft.reader.path("sign"),
                found: "signed content, which does not come where \(first.keyPath) is set",
                use: "\(Self.remedy(first.value)); or sign: [method, target, challenge]"
            )
        }
    }

    private func warn(_ decides: Located<DecisionForm>, _ rules: [Rule]) {
        let named = rules.prefix(3).map(\.id).joined(separator: ", ")
        let more = rules.count > 3 ? " and \(rules.count - 3) more" : ""
        reader.log.warning(
            decides,
            found: "it without content: whole, so that rules which sign the content refuse every "
                + "request there (content-unseen): \(named)\(more)",
            use: Self.remedy(decides.value)
        )
    }

    /// How the content comes to a listener. The form does not tell which proxy asks.
    private static func remedy(_ form: DecisionForm) -> String {
        let forwarding = "have it forward such requests to a listener without decides"
        return switch form {
        case .authRequest:
            "content: whole beside decides where HAProxy asks with all content; nginx can't send "
                + "content: \(forwarding)"
        case .forwardAuth:
            "content: whole beside decides where Traefik asks with forwardBody; Caddy can't send "
                + "content: \(forwarding)"
        case .extAuthz: "content: whole beside decides, and with_request_body in Envoy"
        case .extAuthzGRPC:
            "content: whole beside decides, and with_request_body with pack_as_bytes in Envoy"
        }
    }
}
