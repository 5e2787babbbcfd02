package import JSONText

/// The gateway's answer to a change of a rollout.
package struct RolloutAnswer {
    package let rule: String
    package let from: String
    package let to: String
    package let areAllLoopsTold: Bool

    package init(_ text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var texts: [String: String] = [:]
        var areAllLoopsTold = false
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            switch try reader.scalar(text) {
            case .string(let value):
                texts[String(decoding: name, as: UTF8.self)] = String(
                    decoding: value,
                    as: UTF8.self
                )
            case .boolean(let value): areAllLoopsTold = value
            case .number, .null: throw reader.error("a member of another kind")
            }
        }
        try reader.end(text)
        guard let rule = texts["rule"], let from = texts["from"], let to = texts["to"] else {
            throw reader.error("a member is missing")
        }
        self.rule = rule == "*" ? "all rules" : rule
        (self.from, self.to, self.areAllLoopsTold) = (from, to, areAllLoopsTold)
    }
}

/// The gateway's answer about a change that is not made yet.
package struct ForecastAnswer {
    /// The most lines that are printed.
    private static let linesMax = 8

    package let lines: [String]
    /// Also `true` where the answer can't be read.
    package let asksConfirmation: Bool

    package init(_ text: Span<UInt8>) {
        let confirm = JSONPointer(tokens: ["confirm"]).string(in: text)
        asksConfirmation = confirm != Array("none".utf8)
        lines = (0..<Self.linesMax).compactMap { place in
            let line = JSONPointer(tokens: ["lines", "\(place)"]).string(in: text)
            return line.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
