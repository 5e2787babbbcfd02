import ArgumentParser
import ConfigurationReading
import Dispatch
import Gateway
import Glibc
import HTTPWire
import Proxy
import Rules
import Services

struct RolloutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout",
        abstract: "Show how the rules of a running gateway stand, or change one at once.",
        discussion: """
            Without a rule it lists them all. What is ordered takes effect in all event loops, \
            holds over reloads and restarts, and stands in the audit log beside the store. Before \
            a rule refuses more clients than it does, also by --all resume, it prints whom the \
            last hour's requests would have cost; where these are more than the rule's guard \
            allows (2 % without a guard), or no request was judged, the order needs --yes, or a \
            yes at the terminal. An order that refuses fewer clients holds at once, also on a full \
            disk. Gateways that share a database all obey within two seconds, and where the one \
            that is asked does not answer, or takes no orders, the order is written into the \
            database.
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
            let asked = try LoadedFile.gateway(gateway.file)
            AdminOptions.send(.init(.get, "/rollout", at: .page), nil, to: asked) { response in
                let text = String(decoding: response.content, as: UTF8.self)
                Glibc.exit(StandardOutput.write(text) ? 0 : 1)
            } unanswered: { text in
                FleetOrder(asked).show(text)
            }
            dispatchMain()
        }
        guard RolloutNote.isPlain(why, max: RolloutNote.whyMax) else {
            throw ValidationError("--why is one line of at most \(RolloutNote.whyMax) bytes")
        }
        let asked = try LoadedFile.gateway(gateway.file)
        let (rule, yes, why) = (request.rule, yes, why)
        @Sendable func call(_ page: String, after order: Int64?) -> AdminCall.Request {
            let call = RolloutRequest.Call(request, why: why, after: order)
            return .init(.post, page, at: .call, content: call.json)
        }
        @Sendable func order(_ text: String) -> Never {
            FleetOrder(asked).give(RolloutRequest.Call(request, why: why), yes, text)
        }
        @Sendable func change(after known: Int64?) {
            AdminOptions.send(call("/rollout/change", after: known), rule, to: asked) {
                let text = Self.text(of: $0.content)
                Glibc.exit(StandardOutput.write(text) ? 0 : 1)
            } unanswered: {
                order($0)
            }
        }
        guard request.mayRefuse else {
            change(after: nil)
            dispatchMain()
        }
        AdminOptions.send(call("/rollout/forecast", after: nil), rule, to: asked) { response in
            let forecast = ForecastAnswer(response.content.span)
            for line in forecast.lines { StandardError.write(line) }
            let isConfirmed =
                yes || !forecast.asksConfirmation || Self.isConfirmed(forecast, of: rule)
            guard isConfirmed else { Glibc.exit(1) }
            change(after: forecast.order)
        } unanswered: {
            order($0)
        }
        dispatchMain()
    }

    /// Whether a person confirms. Without a terminal nothing is ordered.
    ///
    /// - rule: `nil` for all.
    private static func isConfirmed(_ forecast: ForecastAnswer, of rule: String?) -> Bool {
        guard isatty(0) == 1, isatty(2) == 1 else {
            let less =
                rule == nil ? "have rules observe by orders of their own" : "order a smaller share"
            StandardError.write(
                forecast.hasData
                    ? "portcullis: nothing has changed, since this would refuse many clients; "
                        + "next: find the reason with `portcullis report`, \(less), or add --yes"
                    : "portcullis: nothing has changed, since no request says whom this would "
                        + "refuse; next: wait until `portcullis report` has requests, or add --yes"
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
        let unsaved =
            change.unsaved.map { fault in
                "not yet on disk: \(fault); the gateway obeys until it ends, and writes the order "
                    + "when there is room; next: make room on the store's disk\n"
            } ?? ""
        let line = "\(change.rule): \(change.from) → \(change.to)\(late)\n\(unsaved)"
        if change.isPending {
            return line + "the fleet's database is away: this gateway alone obeys, and writes the "
                + "order when the database answers; give it to each gateway that must obey now\n"
        }
        return line + (change.order.map { "order \($0): all gateways obey within 2 s\n" } ?? "")
    }
}

/// An order at the database of a fleet, since the gateway that was asked does not answer.
private struct FleetOrder {
    private let fleet: FleetCommands?

    init(_ asked: AskedGateway) { fleet = asked.configuration.flatMap { FleetCommands($0) } }

    /// - unanswered: why the gateway does not answer.
    func show(_ unanswered: String) -> Never {
        end(unanswered) { (fleet) throws(FleetCommands.Fault) in
            let (lines, version) = try fleet.standing()
            return lines + "order \(version), in the fleet's database\n"
        }
    }

    func give(_ call: RolloutRequest.Call, _ yes: Bool, _ unanswered: String) -> Never {
        end(unanswered) { (fleet) throws(FleetCommands.Fault) in
            guard !call.request.mayRefuse || yes else {
                throw FleetCommands.Fault(
                    text: "nothing has changed: no gateway says whom this would refuse; ask one "
                        + "that answers, or add --yes"
                )
            }
            let (change, version) = try fleet.order(call)
            return "\(change.rule ?? "all rules"): \(change.from) → \(change.to)\n"
                + "order \(version), in the fleet's database: all gateways obey within 2 s\n"
        }
    }

    private func end(
        _ unanswered: String,
        _ body: (FleetCommands) throws(FleetCommands.Fault) -> String
    ) -> Never {
        StandardError.write("portcullis: \(unanswered)")
        guard let fleet else { Glibc.exit(1) }
        do throws(FleetCommands.Fault) {
            Glibc.exit(StandardOutput.write(try body(fleet)) ? 0 : 1)
        } catch {
            StandardError.write("portcullis: \(error.text)")
            Glibc.exit(1)
        }
    }
}
