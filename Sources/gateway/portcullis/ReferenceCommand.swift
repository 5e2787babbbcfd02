import ArgumentParser
import ConfigurationReading
import HTTPWire
import Services
import Verification

/// Prints the tables of the texts from the code that they describe. `deploy/reference` writes them
/// into the pages, and a test compares.
struct ReferenceCommand: ParsableCommand {
    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case reasons, metrics, keys, limits, commands, fronts
    }

    static let configuration = CommandConfiguration(
        commandName: "reference",
        abstract: "Print a table of the reference, as Markdown.",
        shouldDisplay: false
    )

    @Argument(help: "Which table.")
    var kind: Kind

    func run() throws {
        let text = rows.map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
        guard StandardOutput.write(text) else { throw ExitCode(1) }
    }

    /// The table, its head first.
    private var rows: [[String]] {
        switch kind {
        case .reasons:
            Self.head("reason", "status", "at fault", "the client", "meaning") + Self.reasons
        case .metrics:
            Self.head("metric", "type", "meaning")
                + AdminSnapshot.families.map { ["`\($0.name)`", $0.type, Self.cell($0.help)] }
        case .keys:
            Self.head("key", "allowed")
                + ConfigurationSchema().rows.filter { !$0.key.hasPrefix("default.") }.map { row in
                    let word = row.isMandatory ? "mandatory: " : ""
                    return ["`\(row.key)`", word + Self.cell(row.allowed)]
                }
        case .limits:
            Self.head("key", "default", "allowed")
                + ConfigurationSchema().limits.map {
                    ["`\($0.key)`", $0.standard, Self.cell($0.allowed)]
                }
        case .fronts:
            Self.head("finding", "proxy", "what to do")
                + FrontAdvice.all.map { [$0.topic.rawValue, $0.front.rawValue, $0.text] }
        case .commands:
            Self.head("command", "what it does")
                + Self.commands(Portcullis.self, "portcullis").sorted { $0[0] < $1[0] }
        }
    }

    private static func head(_ names: String...) -> [[String]] {
        [names, names.map { _ in "---" }]
    }

    /// A text in the form of a table's cell.
    private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }

    private static var reasons: [[String]] {
        let outcomes: [LocalOutcome] =
            Refusal.allCases.map { .refused($0) } + OriginFailure.allCases.map { .failed($0) }
            + LocalFault.allCases.map { .fault($0) }
            + Malformed.Reason.allCases.map { .malformed($0) }
        return outcomes.map { outcome in
            let row = outcome.row
            let next = row.nextStep == .unsaid ? "" : "`\(row.nextStep.rawValue)`"
            // A preflight with this finding is forwarded.
            let status = outcome == .refused(.preflight) ? "never sent" : "\(row.status)"
            return ["`\(outcome.reason)`", status, row.blame.rawValue, next, cell(row.title)]
        }
    }

    /// The commands with an action, and their arguments.
    private static func commands(_ type: any ParsableCommand.Type, _ words: String) -> [[String]] {
        let inner = type.configuration.subcommands.filter { $0.configuration.shouldDisplay }
        guard inner.isEmpty else {
            return inner.flatMap { commands($0, "\(words) \($0.configuration.commandName ?? "")") }
        }
        let usage = Portcullis.usageString(for: type)
        return [["`\(cell(usage))`", cell(type.configuration.abstract)]]
    }
}
