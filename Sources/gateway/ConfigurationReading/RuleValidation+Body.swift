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
    func challenge(of rule: StatedRule, signing: SigningForm) -> ChallengeRule {
        let (settings, reader) = (rule.value.challenge, rule.reader)
        let stated = settings.need.map { need in
            // A mapping has a key for it.
            let path = reader.path("challenge")
            let hasKey = log.places["\(path).need"] != nil
            return log.located(hasKey ? "\(path).need" : path, need)
        }
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
            if let stated, stated.value != .none, settings.pointer == nil {
                log.warning(
                    stated,
                    found: "a challenge that the content need not hold",
                    use:
                        "challenge: { need: \(stated.value.rawValue), json_pointer: /… } if it does"
                )
            }
            return stated?.value ?? (settings.pointer == nil ? .none : .required)
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

    func source(of rule: StatedRule, signing: SigningForm) -> ChallengeSource {
        guard let stated = rule.value.challenge.pointer else { return .field }
        let pointer = log.located(rule.reader.path("challenge.json_pointer"), stated)
        if signing != .content {
            log.error(
                pointer,
                found: "it without sign: content, where it has no effect",
                use: "sign: content, or no json_pointer"
            )
        } else if rule.value.challenge.need == ChallengeRule.none {
            log.error(
                pointer,
                found: "it with need: none, where it has no effect",
                use: "need: required | optional, or no json_pointer"
            )
        }
        return .jsonPointer(pointer.value)
    }

    func body(of rule: StatedRule, signing: SigningForm) -> BodyRule {
        let (body, reader) = (rule.value.body, rule.reader)
        let path = reader.path("body")
        // A mapping has a key for it.
        let place = log.places["\(path).digest"] == nil ? path : "\(path).digest"
        guard signing.coversBody else {
            if reader.has("body"), body.digest != .none || body.hasBounds {
                useless(
                    reader,
                    "body",
                    with: "a sign that leaves the content out",
                    use: "a sign with body, or no body"
                )
            }
            return .none
        }
        checkDigest(log.located(place, body.digest), isContent: signing == .content)
        let memoryPlace = log.located("\(path).memory", body.memory)
        switch body.digest {
        case .none: return .none
        case .streamed:
            if body.memory != nil {
                log.error(
                    memoryPlace,
                    found: "it with digest: streamed, where it has no effect",
                    use: "digest: held, or no memory"
                )
            }
            return .streamed(limit: body.limit ?? Self.streamedLimit)
        case .held:
            let isParsed = rule.value.challenge.pointer != nil
            let limit = body.limit ?? (isParsed ? Self.parsedLimit : Self.heldLimit)
            let memory = body.memory ?? min(limit, Self.heldMemory)
            if memory > limit {
                log.error(
                    memoryPlace,
                    found: "\(memory.text) with a limit of \(limit.text)",
                    use: "no more than the limit"
                )
            }
            return .held(limit: limit, memory: memory)
        }
    }

    private func checkDigest(_ digest: Located<RuleSettings.Body.Digest>, isContent: Bool) {
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
