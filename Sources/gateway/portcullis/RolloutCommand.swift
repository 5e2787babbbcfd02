import ArgumentParser
import ConfigurationReading
import Dispatch
import Encodings
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
            last hour's requests would have cost; where these are most, or more than the rule's \
            guard allows (2 % without a guard), or fewer than ten requests were judged, the order \
            needs --yes, or a yes at the terminal. An order that refuses fewer clients holds at \
            once, also on a full disk. Gateways that share a database all obey within two seconds, \
            and where the one that is asked does not answer, or takes no orders, the order is \
            written into the database that --config names.
            """
    )

    @OptionGroup var gateway: AdminOptions

    @Option(name: .customLong("all"), help: "For every rule that enforces: observe, or resume.")
    var all: String?

    @Option(help: "Why, in one line, for the audit log.")
    var why = ""

    @Flag(help: "Order it also where many clients would be refused.")
    var yes = false

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    @Argument(help: "The rule's id.")
    var rule: String?

    @Argument(help: "A share as 10%, observe, off, or file: what the configuration says.")
    var to: String?

    func run() throws {
        guard let request = try request() else {
            try show()
        }
        guard RolloutNote.isPlain(why, max: RolloutNote.whyMax) else {
            throw ValidationError("--why is one line of at most \(RolloutNote.whyMax) bytes")
        }
        let asked = try gateway.asked()
        let (rule, yes, why, json) = (request.rule, yes, why, json)
        @Sendable func call(_ page: String, after order: Int64?) -> AdminCall.Request {
            let call = RolloutRequest.Call(request, why: why, after: order)
            return .init(.post, page, at: .call, content: call.json)
        }
        @Sendable func order(_ text: String) -> Never {
            let fleet = FleetOrder(asked, json: json)
            fleet.give(RolloutRequest.Call(request, why: why), yes, text)
        }
        @Sendable func change(after known: Int64?) {
            AdminOptions.send(call("/rollout/change", after: known), rule, to: asked) {
                guard let text = Self.text(of: $0.content, json: json) else {
                    StandardError.write(
                        "portcullis: the gateway took it, and answered what can't be read"
                    )
                    ExitStatus.no.end()
                }
                ExitStatus(isYes: StandardOutput.write(text)).end()
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
            guard isConfirmed else { ExitStatus.no.end() }
            change(after: forecast.order)
        } unanswered: {
            order($0)
        }
        dispatchMain()
    }

    /// Shows how the rules stand.
    private func show() throws -> Never {
        let (asked, json) = (try gateway.asked(), json)
        let page = json ? "/status" : "/rollout"
        AdminOptions.send(.init(.get, page, at: .page), nil, to: asked) { response in
            if json { StatusPage.print(["rules"], of: response.content).end() }
            let text = String(decoding: response.content, as: UTF8.self)
            ExitStatus(isYes: StandardOutput.write(text)).end()
        } unanswered: { text in
            FleetOrder(asked, json: json).show(text)
        }
        dispatchMain()
    }

    /// A change as a document.
    ///
    /// - rule: `nil` for all.
    fileprivate static func document(
        rule: String?,
        _ values: (from: String, to: String),
        order: Int64?,
        _ more: (inout JSONWriter) -> Void
    ) -> String {
        var out = JSONWriter(.indented)
        out.object { out in
            out.member("rule", rule)
            out.member("from", values.from)
            out.member("to", values.to)
            out.member("fleet_order", order.map { JSONValue.number($0) } ?? .null)
            more(&out)
        }
        return out.text + "\n"
    }

    /// Whether a person confirms. Without a terminal nothing is ordered.
    ///
    /// - rule: `nil` for all.
    private static func isConfirmed(_ forecast: ForecastAnswer, of rule: String?) -> Bool {
        Confirmation.isGiven {
            let less =
                rule == nil ? "have rules observe by orders of their own" : "order a smaller share"
            let why =
                switch forecast.doubt {
                case .manyRefused, .none:
                    "this would refuse many clients; next: find the reason with `portcullis "
                        + "report`, \(less), or add --yes"
                case .fewRequests:
                    "so few requests don't say whom this would refuse; next: wait until "
                        + "`portcullis report` has ten, or add --yes"
                case .noRequests:
                    "no request says whom this would refuse; next: wait until `portcullis report` "
                        + "has ten, or add --yes"
                }
            return why
        }
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
                    "portcullis: \(to): use a share as 10% (100% enforces for all), "
                        + "observe, off or file\(hint)"
                )
                throw ExitStatus.usage
            }
            return .order(order, rule: rule)
        }
    }

    /// `nil` where a document was asked for, and the answer can't be read.
    private static func text(of content: [UInt8], json: Bool) -> String? {
        guard let change = try? RolloutAnswer(content.span) else {
            return json ? nil : "the gateway took it, and answered what can't be read\n"
        }
        if json {
            return document(
                rule: change.isOfAll ? nil : change.rule,
                (change.from, change.to),
                order: change.order
            ) { out in
                out.member("all_event_loops", change.areAllLoopsTold)
                out.member("pending", change.isPending)
                out.member("unsaved", change.unsaved)
            }
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
    private let json: Bool

    init(_ asked: AskedGateway, json: Bool) {
        fleet = asked.configuration.flatMap { FleetCommands($0) }
        self.json = json
    }

    /// - unanswered: why the gateway does not answer.
    func show(_ unanswered: String) -> Never {
        end(unanswered) { (fleet) throws(FleetCommands.Fault) in
            let standing = try fleet.standing()
            guard !json else { return standing.json }
            return standing.lines + "order \(standing.version), in the fleet's database\n"
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
            guard !json else {
                let values = (change.from, change.to)
                return RolloutCommand.document(rule: change.rule, values, order: version) { out in
                    out.member("all_event_loops", false)
                    out.member("pending", false)
                    out.member("unsaved", nil as String?)
                }
            }
            return "\(change.rule ?? "all rules"): \(change.from) → \(change.to)\n"
                + "order \(version), in the fleet's database: all gateways obey within 2 s\n"
        }
    }

    private func end(
        _ unanswered: String,
        _ body: (FleetCommands) throws(FleetCommands.Fault) -> String
    ) -> Never {
        StandardError.write("portcullis: \(unanswered)")
        guard let fleet else { ExitStatus.no.end() }
        do throws(FleetCommands.Fault) {
            ExitStatus(isYes: StandardOutput.write(try body(fleet))).end()
        } catch {
            StandardError.write("portcullis: \(error.text)")
            ExitStatus.no.end()
        }
    }
}
