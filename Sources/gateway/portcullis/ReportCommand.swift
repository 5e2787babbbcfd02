import ArgumentParser
import DeviceKey
import Gateway
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
            installs. A reload keeps the counts, a restart begins anew.
            """
    )

    @OptionGroup var gateway: AdminOptions

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
        try gateway.call(rule == nil ? .get : .post, page, rule ?? "", about: rule) {
            response in
            StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
        }
    }
}

extension ReportWindow: ExpressibleByArgument {}

struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Say why a running gateway has refused a request, or would have.",
        discussion: """
            What was asked, what was found, which check failed, and what the client does next, the \
            latest first. The gateway remembers some hundred refusals of each event loop, and \
            forgets them at a restart. Requests that were only observed are told, too.
            """
    )

    @OptionGroup var gateway: AdminOptions

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
        try gateway.call(.post, json ? "/why/json" : "/why", name) { response in
            StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
        }
    }
}
