import ArgumentParser
import ConfigurationReading
import Cryptography
import Foundation
import Gateway
import Glibc
import HTTPWire
import KeyStore
import Parties
import Services
import Telemetry
import Verification

/// The command line. ``ExitStatus`` says what each command's exit status means.
@main
struct Portcullis: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis",
        abstract: "A reverse proxy that lets only genuine copies of an app reach an API.",
        discussion: """
            `portcullis help TOPIC` prints a page of the texts, such as turn-it-off, \
            counter-replayed or the name of an alert, and `portcullis help WORD` lists the pages \
            about a word, such as disk or latency. Where a command has the name of a page, .md \
            follows it: store.md.
            """,
        version: ProgramVersion.text,
        subcommands: [
            ServeCommand.self, CheckCommand.self, DiffCommand.self, ExplainCommand.self,
            TestCommand.self, PlanCommand.self,
            InitCommand.self, DoctorCommand.self, SchemaCommand.self,
            KeysCommand.self, ReceiptsCommand.self, StoreCommand.self, OriginsCommand.self,
            FleetCommand.self, ReportCommand.self, RolloutCommand.self, UpgradeCommand.self,
            WhyCommand.self,
            VerifyCommand.self, InspectCommand.self, ReferenceCommand.self,
        ]
    )

    static func main() {
        OpenSSLCleanup.leaveToSystem()
        StandardStreams.prepare()
        printPage(CommandLine.arguments.dropFirst())
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let code as ExitCode {
            Glibc.exit(code.rawValue)
        } catch let status as ExitStatus {
            status.end()
        } catch let problem as StoreProblem {
            StandardError.write("portcullis: \(problem)")
            ExitStatus.no.end()
        } catch {
            let isAsked = exitCode(for: error) == .success
            let words = CommandLine.arguments.dropFirst()
            let text = MistypedCommand(Array(words))?.text ?? fullMessage(for: error)
            if isAsked { StandardOutput.write(text + "\n") } else { StandardError.write(text) }
            (isAsked ? ExitStatus.yes : .usage).end()
        }
    }

    /// Ends with the page of `help TOPIC`, or with the pages that have a word. Where the words name
    /// a command, its help comes first. The parser handles a command with words that no page has.
    private static func printPage(_ words: ArraySlice<String>) {
        let topic = Array(words.dropFirst())
        guard words.first == "help", !topic.isEmpty, !topic.contains(where: { $0.hasPrefix("-") })
        else { return }
        let link = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        let pages = HelpPages(besides: URL(filePath: link ?? CommandLine.arguments[0]))
        var (command, rest): (any ParsableCommand.Type, ArraySlice<String>) = (self, topic[...])
        while let word = rest.first,
            let next = command.configuration.subcommands
                .first(where: { $0.configuration.commandName == word })
        {
            (command, rest) = (next, rest.dropFirst())
        }
        if rest.isEmpty {
            let list = pages.list(about: topic).map { "\n" + $0 } ?? ""
            let text = helpMessage(for: command) + "\n" + list
            ExitStatus(isYes: StandardOutput.write(text)).end()
        }
        if let text = pages.text(topic) { ExitStatus(isYes: StandardOutput.write(text)).end() }
        guard rest.count == topic.count else { return }
        StandardError.write(pages.absence(of: topic.joined(separator: " ")))
        ExitStatus.usage.end()
    }
}

/// A word in the place of a command that is none: `portcullis chekc FILE`.
struct MistypedCommand {
    /// Says which command was probably meant, or which there are.
    let text: String

    /// `nil` where the words name commands as far as they go.
    init?(_ words: [String]) {
        var (command, path): (any ParsableCommand.Type, String) = (Portcullis.self, "portcullis")
        for word in words {
            let inner = command.configuration.subcommands
            guard !inner.isEmpty, word != "help", !word.hasPrefix("-") else { return nil }
            if let next = inner.first(where: { $0.configuration.commandName == word }) {
                (command, path) = (next, "\(path) \(word)")
                continue
            }
            let names = inner.filter { $0.configuration.shouldDisplay }
                .compactMap { $0.configuration.commandName }
            let next = Suggestion.closest(to: word, among: names).map {
                "did you mean `\(path) \($0)`?"
            }
            text =
                "portcullis: there is no command `\(path) \(word)`; "
                + (next ?? "there are \(names.joined(separator: ", "))")
                + "\nnext: `\(path) --help` says what each does"
            return
        }
        return nil
    }
}

/// Prints the tables of the texts from the code that they describe. `deploy/reference` writes them
/// into the pages, and a test compares.
struct ReferenceCommand: ParsableCommand {
    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case reasons, observed, metrics, keys, limits, commands, fronts, exits
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
        guard StandardOutput.write(text) else { throw ExitStatus.no }
    }

    /// The table, its head first.
    private var rows: [[String]] {
        switch kind {
        case .reasons:
            Self.head("reason", "status", "at fault", "the client", "meaning") + Self.reasons
        case .observed: Self.head("reason", "refused", "why") + Self.observed
        case .metrics:
            Self.head("metric", "type", "meaning")
                + AdminSnapshot.families(idlePartyFacts).map {
                    ["`\($0.name)`", $0.type, Self.cell($0.help)]
                }
        case .keys: Self.head("key", "default", "allowed", "meaning") + Self.keys
        case .limits:
            Self.head("key", "default", "allowed", "meaning")
                + ConfigurationSchema().limits.map(Self.cells)
        case .fronts:
            Self.head("finding", "proxy", "what to do")
                + FrontAdvice.all.map { [$0.topic.rawValue, $0.front.rawValue, $0.text] }
        case .commands:
            Self.head("command", "what it does")
                + Self.commands(Portcullis.self, "portcullis").sorted { $0[0] < $1[0] }
        case .exits:
            Self.head("command", "0", "1", "2")
                + ExitStatus.rows(of: Self.names(Portcullis.self).sorted()).map { row in
                    ["`portcullis \(row[0])`"] + row.dropFirst().map(Self.cell)
                }
        }
    }

    /// Each key once: kinds of `proofs` share some. Those of `limits` have a table of their own.
    private static var keys: [[String]] {
        let schema = ConfigurationSchema()
        var known = Set(schema.limits.map(\.key).filter { $0.hasPrefix("limits.") })
        let rows = schema.rows.filter {
            !$0.key.hasPrefix("default.") && known.insert($0.key).inserted
        }
        return rows.map(cells)
    }

    private static func cells(_ row: ConfigurationSchema.Row) -> [String] {
        let standard = row.standard ?? (row.isMandatory ? "mandatory" : "")
        return ["`\(row.key)`", cell(standard), cell(row.allowed), cell(row.meaning)]
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
            return ["`\(outcome.reason)`", status, row.blame.rawValue, next, cell(outcome.meaning)]
        }
    }

    /// Whether the mode of a rule decides, for each reason that a request can have.
    private static var observed: [[String]] {
        let verdicts = RefusalRow.Subject.allCases.compactMap { subject -> [String]? in
            guard let observed = subject.observed else { return nil }
            let reasons = Refusal.allCases.filter { $0.row.subject == subject }
            return [codes(reasons.map(\.rawValue)), observed.refused, observed.why]
        }
        return verdicts + [
            [
                codes(LocalFault.ofRequests.map(\.rawValue)), "always",
                "HTTP that no gateway may pass on, or a query that names no request",
            ],
            [
                "all of [requests that are no valid HTTP](reasons.md#what-you-do)", "always",
                "the gateway and the origin could read them differently",
            ],
        ]
    }

    private static func codes(_ words: [String]) -> String {
        words.map { "`\($0)`" }.joined(separator: ", ")
    }

    /// The commands with an action, without the program's name.
    private static func names(_ type: any ParsableCommand.Type) -> [String] {
        let inner = type.configuration.subcommands.filter { $0.configuration.shouldDisplay }
        return inner.flatMap { command -> [String] in
            let word = command.configuration.commandName ?? ""
            let names = names(command).map { "\(word) \($0)" }
            return names.isEmpty ? [word] : names
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
