import Foundation

/// What a command printed, without what differs from run to run. Tests/docs/texts.md has the rules
/// for people.
enum Normalised {
    /// Patterns, and what stands for what they match.
    private static let volatile: [(pattern: String, name: String)] = [
        ("AQ[A-Za-z0-9_-]{54}", "CHALLENGE"),
        ("omlzaWduYXR1cmV[A-Za-z0-9+/]+=*", "ASSERTION"),
        (#"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|\+0000)"#, "TIME"),
        (#"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"#, "TIME"),
        (#""request_id":"[0-9a-f]{32}""#, #""request_id":"ID""#),
        (#""time_ms":\d+"#, #""time_ms":N"#),
        (#""duration_us":\d+"#, #""duration_us":N"#),
        (#"none of [\d,]+ replays"#, "none of N replays"),
        (#"process \d+"#, "process N"),
        ("[0-9a-f]{64}", "HASH"),
    ]

    static func line(_ line: String) -> String {
        var text = line
        for (pattern, name) in volatile {
            text = text.replacingOccurrences(
                of: pattern,
                with: name,
                options: .regularExpression
            )
        }
        while text.last == " " { text.removeLast() }
        return text
    }

    /// Whether the printed lines are those that a text shows. `…` alone in a line stands for any
    /// number of lines, elsewhere in a line for any characters.
    static func agree(_ shown: [String], _ printed: [String]) -> Bool {
        agree(shown.map(line)[...], trimmed(printed.map(line))[...])
    }

    private static func trimmed(_ lines: [String]) -> [String] {
        var lines = lines
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    private static func agree(_ shown: ArraySlice<String>, _ printed: ArraySlice<String>) -> Bool {
        guard let first = shown.first else { return printed.isEmpty }
        let rest = shown.dropFirst()
        if first.trimmingCharacters(in: .whitespaces) == "…" {
            return (printed.startIndex...printed.endIndex).contains { agree(rest, printed[$0...]) }
        }
        guard let line = printed.first, agree(first, line) else { return false }
        return agree(rest, printed.dropFirst())
    }

    private static func agree(_ shown: String, _ printed: String) -> Bool {
        let parts = shown.components(separatedBy: "…")
        guard parts.count > 1 else { return shown == printed }
        guard printed.hasPrefix(parts[0]) else { return false }
        var rest = printed.dropFirst(parts[0].count)
        for part in parts.dropFirst().dropLast() {
            guard let found = rest.range(of: part) else { return false }
            rest = rest[found.upperBound...]
        }
        return rest.hasSuffix(parts[parts.count - 1])
    }
}
