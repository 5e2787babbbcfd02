import AppAttest
import HTTPWire
import Parties
import Proxy
import RequestBinding
import Rules
import Tokens
import Verification

/// A configuration in its file's words: typed, all optional, each value with its place.
struct StatedConfiguration {
    /// The place of the rules.
    enum RuleSource {
        case none
        case list([StatedRule])
        case folder(Located<String>)
    }

    let stated: Stated<GatewaySettings>
    let folder: String
    let apps: [Stated<AppSettings>]
    let apple: Stated<AppleSettings>?
    let google: Stated<GoogleSettings>?
    let tracing: Stated<TracingSettings>?
    /// The parties that `proofs` may name.
    let parties: [any ProofParty.Type]
    let proofs: [StatedProof]
    let fallback: StatedRule?
    let rules: RuleSource

    var settings: GatewaySettings { stated.value }
    var reader: MappingReader { stated.reader }

    init?(
        _ root: SourceNode,
        folder: String,
        parties: [any ProofParty.Type] = ProofParties.standard,
        log: ProblemLog
    ) {
        log.folder = folder
        guard let stated = Stated(root, at: "", over: GatewaySettings(), log) else { return nil }
        self.stated = stated
        self.folder = folder
        let reader = stated.reader
        apps = Self.apps(reader)
        apple = Stated(reader, "apple", over: AppleSettings())
        google = Stated(reader, "google", over: GoogleSettings())
        tracing = Stated(reader, "tracing", over: TracingSettings())
        self.parties = parties
        proofs = StatedProof.all(reader, parties)
        fallback = reader.node("default").flatMap {
            RuleSettings.read($0, at: "default", isDefault: true, log)
        }
        rules = Self.rules(reader, folder: folder)
    }

    private static func apps(_ reader: MappingReader) -> [Stated<AppSettings>] {
        reader.log.record?.text("apps", FileFolder.Content.apps.text)
        // A folder: its files were read before, or their faults were reported.
        if case .text? = reader.node("apps")?.content { return [] }
        let nodes = reader.list("apps", of: "apps: - id: …") ?? []
        return nodes.compactMap { Stated($0, at: $1, over: AppSettings(), reader.log) }
    }

    private static func rules(_ reader: MappingReader, folder: String) -> RuleSource {
        guard let node = reader.node("rules") else { return .none }
        let use = FileFolder.Content.rules.use
        reader.log.record?.text("rules", FileFolder.Content.rules.text)
        switch node.content {
        case .text(let text) where !text.isEmpty:
            let stated = Located(value: text, place: node.place, keyPath: "rules")
            let path = reader.log.text(of: stated, takesVariables: true) { !$0.isEmpty }
            guard let path else { return .none }
            return .folder(stated.map { _ in FilePath.joined(folder, path) })
        case .list(let nodes):
            return .list(RuleSettings.all(nodes, at: "rules", reader.log))
        case .text, .nothing, .mapping:
            reader.log.error(node.place, "rules", found: node.found, use: use)
            return .none
        }
    }
}

// Listeners at which other proxies ask for decisions.
extension StatedConfiguration {
    /// Signed content can be verified only where the asking proxy sends it. Otherwise the
    /// application would execute content that was not judged.
    ///
    /// A listener without `decides` gets all content. Where no listener gets it, such a rule is an
    /// error. Where one does, the others refuse the rule's requests, which is worth a warning.
    func validateDecisions(_ rules: some Sequence<(StatedRule, Rule)>) {
        let listeners = settings.listeners
        let blind = listeners.filter { $0.decides.map { $0.content != .whole } ?? false }
            .compactMap { listener in
                listener.decides.map { reader.log.located("\(listener.keyPath).decides", $0.form) }
            }
        let signing = rules.filter { $0.1.mode.verifies && $0.1.signing.coversBody }
        guard let first = blind.first, !signing.isEmpty else { return }
        guard blind.count == listeners.count else {
            for decides in blind { warn(decides, signing.map(\.1)) }
            return
        }
        for (stated, _) in signing {
            stated.reader.error(
                "sign",
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
