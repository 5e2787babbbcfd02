package import JSONText

/// What an operator asks for.
package enum RolloutWish: Hashable, Sendable {
    /// The rule goes by the order, whatever its file says.
    case order(RolloutOrder, rule: String)
    /// The rule goes by its file again.
    case file(rule: String)
    /// No rule refuses: every one that enforces observes.
    case observeAll
    /// The end of that: each rule goes by its order or its file again.
    case resumeAll

    /// The rule that it is about; `nil` for all.
    package var rule: String? {
        switch self {
        case .order(_, let rule), .file(let rule): rule
        case .observeAll, .resumeAll: nil
        }
    }

    /// Whether a single rule may refuse more clients than before.
    package var mayRefuse: Bool {
        switch self {
        case .order(.share, _), .file: true
        case .order(.observe, _), .order(.off, _), .observeAll, .resumeAll: false
        }
    }

    /// The call that asks for it: `{"rule": "orders", "to": "10%", "why": "…"}`, or
    /// `{"all": "observe", "why": "…"}`.
    package struct Call: Hashable, Sendable {
        package let wish: RolloutWish
        package let why: String

        package init(_ text: Span<UInt8>) throws(JSONError) {
            var reader = JSONReader()
            var values: [String: String] = [:]
            try reader.beginObject(text)
            while let bytes = try reader.nextName(text) {
                let name = String(decoding: bytes, as: UTF8.self)
                guard ["rule", "to", "all", "why"].contains(name) else {
                    throw reader.error("unknown member; use rule and to, or all; why")
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
            case (let rule?, "file"?, nil): wish = .file(rule: rule)
            case (let rule?, let to?, nil):
                guard let order = RolloutOrder(text: to) else {
                    throw reader.error("to is \(to); use a share as 10%, observe, off or file")
                }
                wish = .order(order, rule: rule)
            case (nil, nil, "observe"?): wish = .observeAll
            case (nil, nil, "resume"?): wish = .resumeAll
            case (nil, nil, let other?):
                throw reader.error("all is \(other); use observe or resume")
            default: throw reader.error("use rule and to, or all alone")
            }
        }

        package init(_ wish: RolloutWish, why: String) { (self.wish, self.why) = (wish, why) }

        /// The call as JSON.
        package var json: [UInt8] {
            var out = JSONWriter(.compact)
            out.object { out in
                switch wish {
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
            }
            return out.line
        }
    }
}
