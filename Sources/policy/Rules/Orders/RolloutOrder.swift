package import Encodings
package import Signatures

/// An operator's order to the running gateway about one rule. It replaces the mode and rollout of
/// the rule's file.
package enum RolloutOrder: Hashable, Sendable {
    /// Enforced for this share, by the subject and the salt that the file names.
    case share(Share)
    case observe
    /// Nothing is verified.
    case off
    /// What is left of an order of a share once a file has taken its rule to `off` or `deny`: where
    /// the file enforces for more clients, this share of them; elsewhere nothing. No operator
    /// orders it.
    case atMost(Share)

    private static let atMostWord = "at most "

    /// Reads `10%`, `observe` or `off`.
    package init?(text: String) {
        switch text {
        case "observe": self = .observe
        case "off": self = .off
        default:
            guard let share = Share(percent: text) else { return nil }
            self = .share(share)
        }
    }

    /// Reads what ``text`` writes.
    init?(kept text: String) {
        guard text.hasPrefix(Self.atMostWord) else {
            self.init(text: text)
            return
        }
        guard let share = Share(percent: text.dropFirst(Self.atMostWord.count)) else { return nil }
        self = .atMost(share)
    }

    package var text: String {
        switch self {
        case .share(let share): share.text
        case .observe: "observe"
        case .off: "off"
        case .atMost(let share): Self.atMostWord + share.text
        }
    }
}

extension Rule {
    /// The rule under an order. A rule that verifies nothing in its file does not say what requests
    /// must carry, so an order changes nothing about it.
    package func ordered(_ order: RolloutOrder) -> Rule {
        guard mode.verifies else { return self }
        switch order {
        case .off:
            var bare = Demands(salt: id, mode: .off)
            bare.allowEncoded = allowEncoded
            return demanding(bare)
        case .observe:
            var demands = demands
            demands.mode = .observe
            return demanding(demands)
        case .share(let share):
            return ordered(to: Rollout(.fixed(share), by: rollout.subject, salt: rollout.salt))
        case .atMost(let share):
            guard mode == .enforce else { return self }
            let schedule = rollout.schedule.atMost(share)
            return ordered(to: Rollout(schedule, by: rollout.subject, salt: rollout.salt))
        }
    }

    /// The rule, enforced for another share.
    func ordered(to rollout: Rollout) -> Rule {
        var demands = demands
        (demands.mode, demands.rollout) = (.enforce, rollout)
        return demanding(demands)
    }

    private func demanding(_ demands: Demands) -> Rule {
        Rule(id: id, index: index, match: match, origin: origin, demands: demands)
    }

    /// The mode, and the rollout where it matters: `enforce, 25% by key`.
    package var modeText: String {
        guard mode == .enforce, rollout.schedule != .fixed(.whole) else { return mode.rawValue }
        return "\(mode.rawValue), \(rollout.text)"
    }
}

/// Who gave an order to the gateway, when and why.
package struct RolloutNote: Hashable, Sendable {
    /// The most bytes of a reason.
    package static let whyMax = 256
    /// The most bytes of a name.
    package static let nameMax = 64

    /// The name in `by` where a guard has fallen. Operators are `uid N` or an address.
    package static let guardName = "guard"
    /// The name in `by` where a gateway has written back what a database had lost, or has ended an
    /// order since a file says so.
    package static let gatewayName = "portcullis"

    package let at: UnixTime
    /// As in `uid 1000`.
    package let by: String
    /// Empty for no reason given.
    package let why: String

    /// `nil` when a text is too long or has control characters, which would break lines of logs.
    package init?(at: UnixTime, by: String, why: String) {
        guard Self.isPlain(by, max: Self.nameMax), Self.isPlain(why, max: Self.whyMax) else {
            return nil
        }
        (self.at, self.by, self.why) = (at, by, why)
    }

    /// Whether a guard ordered it, and not an operator.
    package var isGuards: Bool { by == Self.guardName }

    package static func isPlain(_ text: String, max: Int) -> Bool {
        text.utf8.count <= max
            && text.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
                default: true
                }
            }
    }

    /// `2026-11-22T19:20:00Z, uid 0: the new build fails`
    package var text: String {
        let time = UnixTime(seconds: at.seconds).iso8601
        return "\(time), \(by)\(why.isEmpty ? "" : ": ")\(why)"
    }
}

/// What an operator asks for.
package enum RolloutRequest: Hashable, Sendable {
    /// The rule follows the order, whatever its file says.
    case order(RolloutOrder, rule: String)
    /// The rule follows its file again.
    case file(rule: String)
    /// No rule refuses: every one that enforces observes.
    case observeAll
    /// Ends `observeAll`: each rule follows its order or its file again.
    case resumeAll

    /// The rule that it is about; `nil` for all.
    package var rule: String? {
        switch self {
        case .order(_, let rule), .file(let rule): rule
        case .observeAll, .resumeAll: nil
        }
    }

    /// Whether a rule may refuse more clients than before.
    package var mayRefuse: Bool {
        switch self {
        case .order(.share, _), .file, .resumeAll: true
        case .order(.observe, _), .order(.off, _), .order(.atMost, _), .observeAll: false
        }
    }

    /// The call that requests it: `{"rule": "orders", "to": "10%", "why": "…"}`, or
    /// `{"all": "observe", "why": "…"}`. In a fleet it may have `"after": 12`.
    package struct Call: Hashable, Sendable {
        package let request: RolloutRequest
        package let why: String
        /// The version of the fleet's orders that the caller knows: the request is refused where
        /// there are newer ones. `nil` for the version that the gateway knows.
        package private(set) var after: Int64?

        package init(_ text: Span<UInt8>) throws(JSONError) {
            var reader = JSONReader()
            var values: [String: String] = [:]
            try reader.beginObject(text)
            while let bytes = try reader.nextName(text) {
                let name = String(decoding: bytes, as: UTF8.self)
                if name == "after", after == nil {
                    guard case .number(let version) = try reader.scalar(text) else {
                        throw reader.error("after is no number")
                    }
                    after = version
                    continue
                }
                guard ["rule", "to", "all", "why"].contains(name) else {
                    throw reader.error("unknown member; use rule and to, or all; why; after")
                }
                guard values[name] == nil else { throw reader.error("\(name) is there twice") }
                guard case .string(let value) = try reader.scalar(text) else {
                    throw reader.error("\(name) is no text")
                }
                values[name] = String(decoding: value, as: UTF8.self)
            }
            try reader.end(text)
            why = values["why"] ?? ""
            guard RolloutNote.isPlain(why, max: RolloutNote.whyMax) else {
                throw reader.error(
                    "why is too long, or no single line; use at most \(RolloutNote.whyMax) bytes"
                )
            }
            switch (values["rule"], values["to"], values["all"]) {
            case (let rule?, "file"?, nil): request = .file(rule: rule)
            case (let rule?, let to?, nil):
                guard let order = RolloutOrder(text: to) else {
                    throw reader.error("to is \(to); use a share as 10%, observe, off or file")
                }
                request = .order(order, rule: rule)
            case (nil, nil, "observe"?): request = .observeAll
            case (nil, nil, "resume"?): request = .resumeAll
            case (nil, nil, let other?):
                throw reader.error("all is \(other); use observe or resume")
            default: throw reader.error("use rule and to, or all alone")
            }
        }

        package init(_ request: RolloutRequest, why: String, after: Int64? = nil) {
            (self.request, self.why, self.after) = (request, why, after)
        }

        package var json: [UInt8] {
            var out = JSONWriter(.compact)
            out.object { out in
                switch request {
                case .order(let order, let rule):
                    out.member("rule", rule)
                    out.member("to", order.text)
                case .file(let rule):
                    out.member("rule", rule)
                    out.member("to", "file")
                case .observeAll: out.member("all", "observe")
                case .resumeAll: out.member("all", "resume")
                }
                if !why.isEmpty { out.member("why", why) }
                if let after { out.member("after", after) }
            }
            return out.line
        }
    }
}
