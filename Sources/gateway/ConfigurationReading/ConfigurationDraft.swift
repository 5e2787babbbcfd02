import AppAttest
import HTTPWire
import Proxy
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

    struct OriginDraft {
        let name: Located<String>
        let servers: [Located<ServerSettings>]
        let rules: OriginRules
        let host: Located<String?>?
        let keptFields: [Located<String>]
        let preface: Located<OriginPreface>?
        let http2: Located<ListenSettings.HTTP2>?
        let paths: PathInterpretation
        let tls: OriginTLSDraft?
    }

    static let keys = [
        "listen", "admin", "lanes", "origins", "apps", "store", "challenges", "sessions",
        "enrolment", "apple", "verdict", "google", "trusted_proxies", "client_address", "traces",
        "timeouts", "limits", "log", "process", "endpoints", "plan", "probes", "spill_folder",
        "hooks", "proofs", "default", "rules",
    ]

    let folder: String
    let reader: MappingReader
    let listeners: [ListenDraft]
    let admin: AdminDraft
    let loops: EventLoopCount
    let origins: [OriginDraft]
    let apps: [AppDraft]
    let store: StoreDraft
    let challenges: ChallengeSettings
    let sessions: SessionTable.Limits
    let enrolment: EnrolmentAdmission.Settings
    let apple: AppleDraft
    let verdict: VerdictDraft
    let google: GoogleDraft
    let trustedProxies: [Located<IPNetwork>]
    let addressSource: Located<ClientAddress.Source>?
    let traces: TraceRule
    let timeouts: Timeouts
    let limits: ProxyLimits
    let log: LogSettings
    let process: ProcessSettings
    let hooks: HookSettings
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
        listeners = ListenDraft.all(reader)
        admin = AdminDraft(reader)
        let loops = reader.value("lanes", use: "auto | 1…256", words: ["auto"]) {
            text -> EventLoopCount? in
            if text == "auto" { return .perCore }
            let number = MappingReader.digits(text)
            return number.flatMap { (1...256).contains($0) ? .fixed($0) : nil }
        }
        self.loops = loops?.value ?? .perCore
        let timeouts = Timeouts(reader.node("timeouts"), log: log)
        self.timeouts = timeouts
        origins = Self.origins(reader, timeouts)
        apps = (reader.list("apps", of: "apps: - id: …") ?? []).compactMap { node, keyPath in
            AppDraft(node, keyPath, log: log)
        }
        store = StoreDraft(reader, folder: folder)
        challenges = ChallengeSettings(reader.node("challenges"), log: log)
        sessions = SessionTable.Limits(reader.node("sessions"), log: log)
        enrolment = EnrolmentAdmission.Settings(reader.node("enrolment"), log: log)
        apple = AppleDraft(reader.node("apple"), log: log)
        verdict = VerdictDraft(reader.node("verdict"), log: log)
        google = GoogleDraft(reader.node("google"), log: log)
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
        limits = ProxyLimits(reader.node("limits"), log: log)
        self.log = LogSettings(reader.node("log"), folder: folder, log: log)
        process = ProcessSettings(reader.node("process"), log: log)
        hooks = HookSettings(reader.node("hooks"), log: log)
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

    private static func origins(_ reader: MappingReader, _ timeouts: Timeouts) -> [OriginDraft] {
        guard let node = reader.node("origins") else { return [] }
        guard case .mapping(let members) = node.content, !members.isEmpty else {
            let use = "a mapping: name: { servers: [10.0.0.5:8080] }"
            reader.log.error(node.place, "origins", found: node.found, use: use)
            return []
        }
        let keys =
            [
                "servers", "host", "keep_fields", "paths", "proxy_protocol", "http2",
                "connect_timeout", "first_byte_timeout", "tls",
            ] + OriginRules.keys
        return members.compactMap { member in
            let keyPath = "origins.\(member.key)"
            let inner = MappingReader(member.value, keyPath, keys: keys, log: reader.log)
            guard let inner else { return nil }
            inner.require("servers", use: "servers: [10.0.0.5:8080]")
            let host = inner.value("host", use: "client | a host name, with a port or without") {
                text in
                Self.hostPolicy(text)
            }
            let preface: Located<OriginPreface>? = inner.word("proxy_protocol")
            let http2: Located<ListenSettings.HTTP2>? = inner.word("http2")
            inner.checkHTTP2(http2?.value ?? .off, preface)
            return OriginDraft(
                name: Located(value: member.key, place: member.place, keyPath: keyPath),
                servers: inner.servers(),
                rules: inner.originRules(timeouts),
                host: host,
                keptFields: keptFields(inner),
                preface: preface,
                http2: http2,
                paths: inner.paths("paths") ?? .all,
                tls: inner.node("tls").flatMap {
                    OriginTLSDraft($0, inner.path("tls"), log: reader.log)
                }
            )
        }
    }

    private static func keptFields(_ reader: MappingReader) -> [Located<String>] {
        let use =
            "fields that are deleted by default, such as X-HTTP-Method-Override or "
            + "CF-Connecting-IP; rules/docs/origins.md lists them"
        let names: [Located<String>]? = reader.list("keep_fields", of: use) { text in
            FieldNameText.lowerCase(text).flatMap { KeptFields.isKeepable($0) ? $0 : nil }
        }
        return names ?? []
    }

    /// `nil` for a text that is neither the word nor a host; otherwise the host to send, if any.
    private static func hostPolicy(_ text: String) -> String?? {
        text == "client" ? .some(nil) : hostName(text).map { .some($0) }
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
                    RuleDraft(node, "rules[\(index)]", isDefault: false, log: reader.log)
                }
            )
        case .text, .nothing, .mapping:
            let use = "a folder of rule files, or a list of rules"
            reader.log.error(node.place, "rules", found: node.found, use: use)
            return .none
        }
    }
}
