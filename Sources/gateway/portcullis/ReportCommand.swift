import ArgumentParser
import DeviceKey
import Gateway
import HTTPWire
import Proxy
import Services

struct ReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Say what a running gateway has seen, and what `enforce` would have refused.",
        discussion: """
            For each rule, or for one: how many requests were verified, missing an assertion, \
            unsupported, invalid or not judged for an error, by the app's version and the key's \
            environment; and what 1, 5, 25 and 100 % would have refused, as requests and as \
            installs. A reload keeps the counts, a restart begins again. Where gateways share a \
            database, it is about all of them.

            Which rule refuses iOS 26.1: report --by os --only "iOS 26.1".
            """
    )

    @OptionGroup var gateway: AdminOptions
    @OptionGroup var member: FleetMemberOptions

    @Option(help: "How far back: 5m, 1h or 1d. The default is 1h; with --json, all three.")
    var since: ReportWindow?

    @Option(help: "Group all rules' requests by the system that clients claim, or by build.")
    var by: ReportGrouping?

    @Option(help: "With --by: only these, such as 'iOS 26.1' or 1042.")
    var only: String?

    @Flag(help: "Print JSON.")
    var json = false

    @Argument(help: "The rule's id; all rules without.")
    var rule: String?

    func validate() throws {
        guard by == nil || !json else {
            throw ValidationError("--json has all groups: use it without --by")
        }
        guard only == nil || by != nil else { throw ValidationError("--only goes with --by") }
    }

    func run() throws {
        let page =
            switch (since, json) {
            case (nil, true): "/report"
            case (let window?, true): "/report/\(window.rawValue)"
            case (let window, false):
                "/report/\((window ?? .hour).rawValue)/\(by?.rawValue ?? "text")"
            }
        let filter = only.map { ReportGroupFilter($0) }
        let method: Method = rule == nil ? .get : .post
        let request = AdminCall.Request(
            method,
            page + member.query,
            at: .page,
            content: Array((rule ?? "").utf8),
            waiting: Self.waitMilliseconds
        )
        try gateway.call(request, about: rule) { response in
            let text = String(decoding: response.content, as: UTF8.self)
            return StandardOutput.write(filter?.filtered(text) ?? text) ? 0 : 1
        }
    }

    /// A report of hundreds of rules takes seconds where the host has other work.
    private static let waitMilliseconds: UInt64 = 60_000
}

extension ReportWindow: ExpressibleByArgument {}
extension ReportGrouping: ExpressibleByArgument {}

struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Say why a running gateway has refused a request, or would have.",
        discussion: """
            What was asked, what was found, which check failed, and what the client does next, the \
            latest first. The gateway remembers some hundred refusals of each event loop, and \
            forgets them at a restart. Requests that were only observed are told, too. Where \
            gateways share a database, all are asked.
            """
    )

    @OptionGroup var gateway: AdminOptions
    @OptionGroup var member: FleetMemberOptions

    @Argument(
        help: ArgumentHelp(
            """
            The request id, as the log, the origin and the problem document have it; the trace id; \
            or a key: its key id in base64, or the short name that the log shows.
            """,
            valueName: "id | key"
        )
    )
    var name: String?

    @Option(help: "Without an id: group the last 50 refusals by claimed system, or by build.")
    var by: ReportGrouping?

    @Option(help: "With --by: only these, such as 'iOS 26.1' or 1042.")
    var only: String?

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard (name == nil) != (by == nil) else {
            throw ValidationError("name a request or a key, or use --by")
        }
        guard by == nil || !json else { throw ValidationError("--json does not go with --by") }
        guard only == nil || by != nil else { throw ValidationError("--only goes with --by") }
    }

    func run() throws {
        if let by { return try group(by) }
        guard let name else { return }
        // A key id does not leave the command: its short name is used instead.
        let short = KeyID(base64: name).map(\.logName) ?? name
        let page = (json ? "/why/json" : "/why") + member.query
        try gateway.call(.init(.post, page, at: .lookup, content: Array(short.utf8))) { response in
            StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
        }
    }
}

extension WhyCommand {
    private func group(_ grouping: ReportGrouping) throws {
        let filter = only.map { ReportGroupFilter($0) }
        let request = AdminCall.Request(.get, "/refusals" + member.query, at: .lookup)
        try gateway.call(request) { response in
            guard let groups = try? RefusalGroups(response.content.span, by: grouping) else {
                StandardError.write("portcullis: the gateway's answer can't be read")
                return 1
            }
            return StandardOutput.write(filter?.filtered(groups.text) ?? groups.text) ? 0 : 1
        }
    }
}

/// The gateway of a fleet that a command is about.
struct FleetMemberOptions: ParsableArguments {
    @Option(
        name: .customLong("gateway"),
        help: "Only of this gateway of a fleet, by the name that `fleet status` has."
    )
    var name: String?

    func validate() throws {
        // A name of `store.postgresql.gateway`, or of a host.
        let isName = name?.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                || (0x61...0x7A).contains(byte) || [0x2D, 0x2E, 0x5F].contains(byte)
        }
        guard isName ?? true else {
            throw ValidationError("--gateway: a name has letters, digits, -, _ and . only")
        }
    }

    var query: String { name.map { "?gateway=\($0)" } ?? "" }
}
