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
            """
    )

    @OptionGroup var gateway: AdminOptions
    @OptionGroup var member: FleetMemberOptions

    @Option(help: "How far back: 5m, 1h or 1d. The default is 1h; with --json, all three.")
    var since: ReportWindow?

    @Flag(help: "Print JSON.")
    var json = false

    @Argument(help: "The rule's id; all rules without.")
    var rule: String?

    func run() throws {
        let page =
            switch (since, json) {
            case (nil, true): "/report"
            case (let window?, true): "/report/\(window.rawValue)"
            case (let window, false): "/report/\((window ?? .hour).rawValue)/text"
            }
        let method: Method = rule == nil ? .get : .post
        let request = AdminCall.Request(
            method,
            page + member.query,
            at: .page,
            content: Array((rule ?? "").utf8),
            waiting: Self.waitMilliseconds
        )
        try gateway.call(request, about: rule) { response in
            ExitStatus(
                isYes: StandardOutput.write(String(decoding: response.content, as: UTF8.self))
            )
        }
    }

    /// A report of hundreds of rules takes seconds where the host has other work.
    private static let waitMilliseconds: UInt64 = 60_000
}

extension ReportWindow: ExpressibleByArgument {}

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
    var name: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        // A key id does not leave the command: its short name is used instead.
        let name = KeyID(base64: self.name).map(\.logName) ?? self.name
        let page = (json ? "/why/json" : "/why") + member.query
        try gateway.call(.init(.post, page, at: .lookup, content: Array(name.utf8))) { response in
            ExitStatus(
                isYes: StandardOutput.write(String(decoding: response.content, as: UTF8.self))
            )
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
