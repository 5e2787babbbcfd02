import Glibc

/// Tells the story and counts its claims.
final class Narrator {
    private let isQuiet: Bool
    private let isTerminal = isatty(STDOUT_FILENO) == 1
    private var stepCount = 0
    private var claims = 0
    private var failedClaims = 0
    /// Whether every claim held and the story came to its end.
    private(set) var isGood = true

    init(isQuiet: Bool) { self.isQuiet = isQuiet }

    func begin(_ title: String) {
        stepCount += 1
        say("\n" + styled("\(stepCount)  \(title)", "1"))
    }

    /// Prints a sentence, or a line of output.
    func say(_ text: String) {
        if !isQuiet { print(text) }
    }

    /// Prints the sent request, and the fields that matter.
    func sent(_ call: Call, showing names: [String] = []) {
        let content = call.content.isEmpty ? "" : "  (\(Self.size(call.content.count)))"
        say("   → \(call.method) \(call.target)\(content)")
        for field in call.fields where names.contains(field.name) {
            say("     \(field.name): \(Self.short(field.value))")
        }
    }

    func answered(_ answer: Answer) {
        var line = "   ← \(answer.status) \(answer.phrase)"
        if let reason = answer.problem("reason") { line += ", reason \(reason)" }
        if let next = answer.problem("next") { line += ", next \(next)" }
        say(line)
        if let challenge = answer.challenge {
            say("     App-Attest-Challenge: \(Self.short(challenge))")
        }
    }

    func originSaw(_ sighting: Sighting) {
        let end = sighting.isComplete ? "complete" : sighting.wasReset ? "RESET" : "ABORTED"
        let size = Self.size(sighting.contentCount)
        say("   origin saw: \(sighting.requestLine) (\(size) of content, \(end))")
        for field in sighting.fields where field.name.lowercased().hasPrefix("app-attest-") {
            say("     \(field.name): \(Self.short(field.value))")
        }
    }

    func claim(_ text: String, _ holds: Bool) {
        claims += 1
        if holds { return say("   \(styled("✔", "32")) \(text)") }
        failedClaims += 1
        fail(text)
    }

    /// Prints a step that went wrong.
    func fail(_ text: String) {
        isGood = false
        print("   \(styled("✘", "31")) \(text)")
    }

    /// Prints the last line.
    func finish() {
        say("")
        if isGood {
            print("\(claims) claims, all held")
        } else {
            print("\(claims - failedClaims) of \(claims) claims held")
        }
    }

    private func styled(_ text: String, _ code: String) -> String {
        isTerminal ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    /// Shortens long texts to their beginning.
    static func short(_ text: String) -> String {
        text.utf8.count > 48 ? "\(text.prefix(40))… (\(text.utf8.count) characters)" : text
    }

    static func size(_ count: Int) -> String {
        count >= 1 << 20 ? "\(count >> 20) MiB" : "\(count) bytes"
    }
}
