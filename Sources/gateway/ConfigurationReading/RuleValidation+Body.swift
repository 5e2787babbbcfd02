import RequestBinding
import Rules

extension RuleValidation {
    /// The most bytes of streamed content where a rule does not say: 1GiB.
    static let streamedLimit = ByteCount.gibibytes(1)
    /// The most bytes of held content where a rule does not say: 10MiB.
    static let heldLimit = ByteCount.mebibytes(10)
    /// The same where the challenge is in the content, which is read on the event loop: 64KiB.
    static let parsedLimit = ByteCount.kibibytes(64)
    /// The bytes of one held content in memory where a rule does not say: 256KiB.
    static let heldMemory = ByteCount.kibibytes(256)

    /// Whether a challenge is required. An unsigned challenge would protect nothing: a replayed
    /// assertion could have a fresh challenge beside it.
    func challenge(of draft: RuleDraft, signing: SigningForm) -> ChallengeRule {
        let stated = draft.challenge?.need
        switch signing {
        case .lines(let parts, _) where parts.contains(.challenge):
            if let stated, stated.value == .none {
                log.error(
                    stated,
                    found: "none, while sign has challenge",
                    use: "required | optional, or a sign without challenge"
                )
            }
            return stated?.value ?? .required
        case .lines:
            if let stated, stated.value != .none {
                log.error(
                    stated,
                    found: "\(stated.value.rawValue), while sign has no challenge",
                    use: "none, or a sign with challenge"
                )
            }
            return .none
        case .content:
            if let stated, stated.value != .none, draft.challenge?.pointer == nil {
                log.warning(
                    stated,
                    found: "a challenge that the content need not hold",
                    use:
                        "challenge: { need: \(stated.value.rawValue), json_pointer: /… } if it does"
                )
            }
            return stated?.value ?? (draft.challenge?.pointer == nil ? .none : .required)
        case .challenge:
            if let stated, stated.value != .required {
                log.error(
                    stated,
                    found: "\(stated.value.rawValue), while nothing but the challenge is signed",
                    use: "required"
                )
            }
            return .required
        }
    }

    func source(of draft: RuleDraft, signing: SigningForm) -> ChallengeSource {
        guard let pointer = draft.challenge?.pointer else { return .field }
        if signing != .content {
            log.error(
                pointer,
                found: "it without sign: content, where it has no effect",
                use: "sign: content, or no json_pointer"
            )
        } else if draft.challenge?.need?.value == ChallengeRule.none {
            log.error(
                pointer,
                found: "it with need: none, where it has no effect",
                use: "need: required | optional, or no json_pointer"
            )
        }
        return .jsonPointer(pointer.value)
    }

    func body(of draft: RuleDraft, signing: SigningForm) -> BodyRule {
        let body = draft.body?.value
        let digest = body?.digest
        guard signing.coversBody else {
            let isNone = digest?.value == RuleDraft.BodyDraft.Digest.none
            if draft.reader.has("body"), !isNone || body?.limit != nil || body?.memory != nil {
                useless(
                    draft,
                    "body",
                    with: "a sign that leaves the content out",
                    use: "a sign with body, or no body"
                )
            }
            return .none
        }
        let isContent = signing == .content
        let chosen = digest?.value ?? .held
        if let digest { checkDigest(digest, isContent: isContent) }
        switch chosen {
        case .none: return .none
        case .streamed:
            if let memory = body?.memory {
                log.error(
                    memory,
                    found: "it with digest: streamed, where it has no effect",
                    use: "digest: held, or no memory"
                )
            }
            return .streamed(limit: body?.limit?.value ?? Self.streamedLimit)
        case .held:
            let usual = draft.challenge?.pointer == nil ? Self.heldLimit : Self.parsedLimit
            let limit = body?.limit?.value ?? usual
            let memory = body?.memory?.value ?? min(limit, Self.heldMemory)
            if let stated = body?.memory, memory > limit {
                log.error(
                    stated,
                    found: "\(memory.text) with a limit of \(limit.text)",
                    use: "no more than the limit"
                )
            }
            return .held(limit: limit, memory: memory)
        }
    }

    private func checkDigest(_ digest: Located<RuleDraft.BodyDraft.Digest>, isContent: Bool) {
        switch digest.value {
        case .held: break
        case .streamed:
            guard isContent else { return }
            log.error(
                digest,
                found: "streamed with sign: content",
                use: "held: the content itself is signed, and must be there to be judged"
            )
        case .none:
            let sign = isContent ? "sign: content" : "a sign with body"
            log.error(
                digest,
                found: "none with \(sign)",
                use: isContent ? "held" : "held | streamed, or a sign without body"
            )
        }
    }
}
