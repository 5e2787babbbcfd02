import Encodings
import RequestBinding
import Rules

extension Rule {
    /// Whether it reads the key of a request: one that takes only tokens does not.
    var readsKeys: Bool { mode.verifies && accept.takesAssertions }

    /// The demands, one line for each part; none for a rule that is off.
    package var demandLines: [String] {
        guard mode.verifies else { return [] }
        guard accept.takesAssertions else {
            return tokenLines
                + (preflight == .forward ? ["CORS preflights forwarded unjudged"] : [])
        }
        var lines = ["signs \(signing.text)"]
        var challengeText = "challenge \(challenge.rawValue)"
        if case .jsonPointer(let pointer) = challengeSource {
            challengeText += " at \(pointer.text) of the content"
        }
        lines.append("\(challengeText), counter \(counter.text)")
        if accept.takesSessions {
            lines.append("accepts \(accept.signedNames.joined(separator: ", "))")
        }
        lines += tokenLines
        if let text = body.text { lines.append(text) }
        if let rate { lines.append(rate.text) }
        if onError == .forward { lines.append("forwarded when the store fails") }
        if unsupported == .forward { lines.append("forwarded when the app says it can't attest") }
        if preflight == .forward { lines.append("CORS preflights forwarded unjudged") }
        if let device { lines += device.lines }
        if let risk { lines.append(risk.text) }
        if let integrity { lines.append(integrity.text) }
        if let fallback = demands.fallback { lines.append(fallback.text) }
        if fields != .standard {
            lines.append("fields \(fields.all.map { String(decoding: $0, as: UTF8.self) })")
        }
        if case .named(let ids) = apps { lines.append("keys of \(ids.joined(separator: ", "))") }
        return lines
    }
}

extension Rule {
    /// The tokens that the rule names, one line for each and what it is for.
    private var tokenLines: [String] {
        var lines = accept.tokens.map { token in
            let place = "\(token.name) (\(token.place.text))"
            return accept.takesAssertions
                ? "accepts \(place) in the place of a signature, bound to no request"
                : "accepts \(place), bound to no request"
        }
        if case .require(let token) = unsupported {
            lines.append(
                "asks for \(token.name) (\(token.place.text)) where the app says it can't attest"
            )
        }
        lines += also.map { "asks for \($0.name) (\($0.place.text)) beside the proof" }
        lines += tokens.filter { $0.onError == .forward }.map {
            "forwarded when \($0.name) can't be checked"
        }
        return lines
    }
}

extension DeviceRule {
    var lines: [String] {
        let bits = DeviceBits.all.filter(refused.contains).map(\.text)
        let end = onError == .forward ? "forwarded" : "refused"
        return [
            "devices refused whose bits 0 and 1 are \(bits.joined(separator: " or "))",
            "device bits are the team's: all its apps on a device share them",
            "device bits not known within \(timeout.settingText): \(end)",
        ]
    }
}

extension SigningForm {
    var text: String {
        switch self {
        case .content: return "the content"
        case .challenge: return "the challenge"
        case .lines(let parts, let headers): return (parts.names + headers).joined(separator: ", ")
        }
    }
}

extension RiskRule {
    /// The limit in words, and the keys for which it refuses.
    var text: String {
        let unknownText =
            switch unknown {
            case .allow: "an unknown one allowed"
            case .refuse: "an unknown one counts as higher"
            }
        let actionText =
            switch action {
            case .mark: "higher ones are marked"
            case .refuse where rollout.schedule == .fixed(.whole): "higher ones are refused"
            case .refuse: "higher ones are refused for \(rollout.text), marked otherwise"
            }
        return "risk metric at most \(max), not older than \(daysMax) days, \(unknownText): "
            + actionText
    }
}

extension IntegrityRule {
    /// What is asked, in words.
    var text: String {
        var asked: [String] = []
        if !device.isEmpty {
            asked.append("device \(device.sorted().map(\.rawValue).joined(separator: " or "))")
        }
        if needsRecognition { asked.append("recognized") }
        if needsLicense { asked.append("licensed") }
        if let activityMax { asked.append("activity at most \(activityMax)") }
        if !playProtect.isEmpty {
            asked.append(
                "Play Protect \(playProtect.map(\.rawValue).sorted().joined(separator: " or "))"
            )
        }
        let conditions = asked.isEmpty ? "" : " that says \(asked.joined(separator: ", "))"
        let end = action == .mark ? "marked otherwise" : "refused otherwise"
        return "Android phones: a token of \(proof.name) (\(proof.place.text))\(conditions), \(end)"
    }
}

extension CounterRule {
    var text: String {
        switch self {
        case .strict: "strict: one request of a key at a time"
        case .window(let width): "in a window of \(width)"
        }
    }
}

extension BodyRule {
    var text: String? {
        switch self {
        case .none: nil
        case .held(let limit, let memory):
            "content held, at most \(limit.text), \(memory.text) of it in memory"
        case .streamed(let limit):
            """
            content streamed, at most \(limit.text): relies on the origin to discard incomplete \
            requests and to read chunked content, which gunicorn, uvicorn, hypercorn, granian, \
            cheroot and mod_wsgi (WSGI) and mod_php don't all do; held is for any origin
            """
        }
    }
}
