import ArgumentParser
import ConfigurationReading
import Gateway
import Glibc
import Origins
import Rules

struct RolloutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout",
        abstract: "Show how the rules of a running gateway stand, or change one at once.",
        discussion: """
            Without a rule it lists them all. What is ordered takes effect in all lanes, holds \
            over reloads and restarts, and stands in the audit log beside the store.
            """
    )

    @OptionGroup var gateway: AdminOptions

    @Option(name: .customLong("all"), help: "For every rule that enforces: observe, or resume.")
    var all: String?

    @Option(help: "Why, in one line, for the audit log.")
    var why = ""

    @Argument(help: "The rule's id.")
    var rule: String?

    @Argument(help: "A share as 10%, observe, off, or file: what the configuration says.")
    var to: String?

    func run() throws {
        guard let wish = try wish() else {
            try gateway.call(.get, "/rollout") { response in
                StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
            }
        }
        guard RolloutNote.isPlain(why, max: RolloutNote.whyMax) else {
            throw ValidationError("--why is one line of at most \(RolloutNote.whyMax) bytes")
        }
        let call = RolloutWish.Call(wish, why: why)
        try gateway.call(.post, "/rollout/change", String(decoding: call.json, as: UTF8.self)) {
            response in
            let text = Self.text(of: response.content)
            return StandardOutput.write(text) ? 0 : 1
        }
    }

    private func wish() throws -> RolloutWish? {
        switch (all, rule, to) {
        case (nil, nil, nil): return nil
        case ("observe"?, nil, nil): return .observeAll
        case ("resume"?, nil, nil): return .resumeAll
        case (_?, nil, nil): throw ValidationError("--all is observe or resume")
        case (_?, _, _): throw ValidationError("use --all, or a rule and what becomes of it")
        case (nil, _, nil), (nil, nil, _): throw ValidationError("say what becomes of the rule")
        case (nil, let rule?, "file"?): return .file(rule: rule)
        case (nil, let rule?, let to?):
            guard let order = RolloutOrder(text: to) else {
                throw ValidationError("\(to): use a share as 10%, observe, off or file")
            }
            return .order(order, rule: rule)
        }
    }

    private static func text(of content: [UInt8]) -> String {
        guard let change = try? RolloutAnswer(content.span) else {
            return "the gateway took it, and answered what can't be read\n"
        }
        let late = change.areAllLanesTold ? "" : " (some lanes are busy and follow)"
        return "\(change.rule): \(change.from) → \(change.to)\(late)\n"
    }
}
