import HTTPWire
import RequestBinding
import Rules

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
