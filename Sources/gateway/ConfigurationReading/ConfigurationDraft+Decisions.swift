import HTTPWire
import RequestBinding
import Rules

// Listeners at which other proxies ask for decisions.
extension ConfigurationDraft {
    /// How a listener's clients ask; `nil` where their requests go to origins.
    func decides(_ listener: ListenDraft) -> DecisionForm? {
        guard let decides = listener.decides else { return nil }
        if trustedProxies.isEmpty {
            reader.log.error(
                decides.place,
                decides.keyPath,
                found: "it without trusted_proxies, so that nobody may ask",
                use: "trusted_proxies with the addresses of the proxies that ask"
            )
        }
        if let proxyProtocol = listener.proxyProtocol, proxyProtocol.value {
            reader.log.error(
                proxyProtocol.place,
                proxyProtocol.keyPath,
                found: "it beside decides, where the peer itself has to be a trusted proxy",
                use: "one of the two"
            )
        }
        return decides.value
    }

    /// A proxy asks before it has the content. So signed content could never be verified, and the
    /// application would execute content that was not judged.
    func validateDecisions(_ rules: some Sequence<(RuleDraft, Rule)>) {
        guard let decides = listeners.lazy.compactMap(\.decides).first else { return }
        for (draft, rule) in rules where rule.mode.verifies && rule.signing.coversBody {
            reader.log.error(
                draft.sign?.place ?? draft.reader.place,
                draft.sign?.keyPath ?? draft.reader.path("sign"),
                found: "signed content, which nobody sees where \(decides.keyPath) is set",
                use: "sign: [method, target, challenge]; or a gateway of its own for what has "
                    + "signed content, which it forwards itself"
            )
        }
    }
}
