import ArgumentParser
import ConfigurationReading
import Dispatch
import Gateway
import Glibc
import Proxy
import Rules

struct RolloutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout",
        abstract: "Show how the rules of a running gateway stand, or change one at once.",
        discussion: """
            Without a rule it lists them all. What is ordered takes effect in all event loops, \
            holds over reloads and restarts, and stands in the audit log beside the store. Before \
            a rule refuses more clients than it does, it prints whom the last hour's requests \
            would have cost; where these are more than the rule's guard allows (2 % without a \
            guard), the order needs --yes, or a yes at the terminal.
            """
    )

    @OptionGroup var gateway: AdminOptions

    @Option(name: .customLong("all"), help: "For every rule that enforces: observe, or resume.")
    var all: String?

    @Option(help: "Why, in one line, for the audit log.")
    var why = ""

    @Flag(help: "Order it also where many clients would be refused.")
    var yes = false

    @Argument(help: "The rule's id.")
    var rule: String?

    @Argument(help: "A share as 10%, observe, off, or file: what the configuration says.")
    var to: String?

    func run() throws {
        guard let request = try request() else {
            try gateway.call(.get, "/rollout") { response in
                StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
            }
        }
        guard RolloutNote.isPlain(why, max: RolloutNote.whyMax) else {
            throw ValidationError("--why is one line of at most \(RolloutNote.whyMax) bytes")
        }
        let configuration = try LoadedFile.configuration(gateway.file)
        let call = String(decoding: RolloutRequest.Call(request, why: why).json, as: UTF8.self)
        let (rule, yes) = (request.rule, yes)
        @Sendable func change() {
            AdminOptions.send(.post, "/rollout/change", call, rule, to: configuration) { response in
                let text = Self.text(of: response.content)
                Glibc.exit(StandardOutput.write(text) ? 0 : 1)
            }
        }
        guard request.mayRefuse else {
            change()
            dispatchMain()
        }
        AdminOptions.send(.post, "/rollout/forecast", call, rule, to: configuration) { response in
            let forecast = ForecastAnswer(response.content.span)
            for line in forecast.lines { StandardError.write(line) }
            guard !forecast.asksConfirmation || yes || Self.isConfirmed() else { Glibc.exit(1) }
            change()
        }
        dispatchMain()
    }

    /// Whether a person confirms. Without a terminal nothing is ordered.
    private static func isConfirmed() -> Bool {
        guard isatty(0) == 1, isatty(2) == 1 else {
            StandardError.write(
                "portcullis: nothing has changed, since this would refuse many clients; next: find "
                    + "the reason with `portcullis report`, order a smaller share, or add --yes"
            )
            return false
        }
        StandardError.write("Order it all the same? Type yes:")
        let isConfirmed = readLine() == "yes"
        if !isConfirmed { StandardError.write("portcullis: nothing has changed") }
        return isConfirmed
    }

    private func request() throws -> RolloutRequest? {
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
                let words = ["observe", "off", "file"]
                let meant =
                    Share(percent: to + "%").map(\.text) ?? Suggestion.closest(to: to, among: words)
                let hint = meant.map { "; did you mean \($0)?" } ?? ""
                StandardError.write(
                    "portcullis: \(to): use a share as 10%, observe, off or file\(hint)"
                )
                throw ExitCode(2)
            }
            return .order(order, rule: rule)
        }
    }

    private static func text(of content: [UInt8]) -> String {
        guard let change = try? RolloutAnswer(content.span) else {
            return "the gateway took it, and answered what can't be read\n"
        }
        let late = change.areAllLoopsTold ? "" : " (some event loops are busy and follow)"
        return "\(change.rule): \(change.from) → \(change.to)\(late)\n"
    }
}
