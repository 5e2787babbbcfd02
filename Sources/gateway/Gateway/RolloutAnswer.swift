package import Encodings

/// The gateway's answer to a change of a rollout.
package struct RolloutAnswer {
    package let rule: String
    package let from: String
    package let to: String
    package let areAllLoopsTold: Bool
    /// The version of the fleet's orders that it has made; `nil` without a fleet.
    package let order: Int64?
    /// Whether the gateway that was asked alone obeys, until the fleet's database answers.
    package let isPending: Bool

    package init(_ text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var texts: [String: String] = [:]
        var flags: [String: Bool] = [:]
        var order: Int64?
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            switch try reader.scalar(text) {
            case .string(let value): texts[name] = String(decoding: value, as: UTF8.self)
            case .boolean(let value): flags[name] = value
            case .number(let value): order = value
            case .null: throw reader.error("a member of another kind")
            }
        }
        try reader.end(text)
        guard let rule = texts["rule"], let from = texts["from"], let to = texts["to"] else {
            throw reader.error("a member is missing")
        }
        self.rule = rule == "*" ? "all rules" : rule
        (self.from, self.to, self.order) = (from, to, order)
        areAllLoopsTold = flags["all_lanes"] ?? false
        isPending = flags["pending"] ?? false
    }
}

/// The gateway's answer about a change that is not made yet.
package struct ForecastAnswer {
    /// The most lines that are printed.
    private static let linesMax = 8

    package let lines: [String]
    /// The version of the fleet's orders from which it was made; `nil` without a fleet.
    package let order: Int64?
    /// Also `true` where the answer can't be read.
    package let asksConfirmation: Bool

    package init(_ text: Span<UInt8>) {
        let confirm = JSONPointer(tokens: ["confirm"]).string(in: text)
        // An older gateway's answer has none; the order is not compared with others then.
        order = JSONDocument(text, members: ["order"])?.integer("order").map { Int64($0) }
        asksConfirmation = confirm != Array("none".utf8)
        lines = (0..<Self.linesMax).compactMap { place in
            let line = JSONPointer(tokens: ["lines", "\(place)"]).string(in: text)
            return line.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
