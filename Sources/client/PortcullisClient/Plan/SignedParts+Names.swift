import RequestBinding

extension SignedParts {
    /// The parts of these names, as plans and the gateway's answers write them; `nil` when a name
    /// is none of them.
    init?(names: some Sequence<some StringProtocol>) {
        var parts: SignedParts = []
        for name in names {
            switch name {
            case "method": parts.insert(.method)
            case "target": parts.insert(.target)
            case "body": parts.insert(.body)
            case "challenge": parts.insert(.challenge)
            default: return nil
            }
        }
        self = parts
    }

    /// The same names.
    var names: [String] {
        let words: [(SignedParts, String)] = [
            (.method, "method"), (.target, "target"), (.body, "body"), (.challenge, "challenge"),
        ]
        return words.filter { contains($0.0) }.map(\.1)
    }
}
