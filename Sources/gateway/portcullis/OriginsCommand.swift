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

struct OriginsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origins",
        abstract: "Look at the origins' servers of a running gateway, or drain one.",
        subcommands: [
            OriginsListCommand.self, OriginsDrainCommand.self, OriginsUndrainCommand.self,
        ]
    )
}

struct OriginsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "One line for each address of a server: how it stands, and what it has to do."
    )

    @OptionGroup var gateway: AdminOptions

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func run() throws {
        if json {
            try gateway.call(.init(.get, "/status", at: .page)) { response in
                StatusPage.print(["origins"], of: response.content)
            }
        }
        try gateway.call(.init(.get, "/origins", at: .page)) { response in
            ExitStatus(
                isYes: StandardOutput.write(String(decoding: response.content, as: UTF8.self))
            )
        }
    }
}

struct OriginsDrainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Send a server no new requests. Those that it has end by themselves.",
        discussion: """
            It stays drained over a reload and an upgrade, until `undrain` or a restart. `origins \
            list` shows how many requests it still has. Where no other server of an origin is up, \
            its requests would be answered 503 `origin-down`: that needs --yes, or a yes at the \
            terminal.
            """
    )

    @OptionGroup var gateway: AdminOptions

    @Flag(help: "Drain it also where no other server is up, or nothing says so.")
    var yes = false

    @Argument(help: "The server, as the configuration has it.")
    var server: String

    func run() throws {
        let (asked, server) = (try gateway.asked(), server)
        @Sendable func drain() {
            let content = Array(server.utf8)
            let request = AdminCall.Request(.post, "/origins/drain", at: .call, content: content)
            AdminOptions.send(request, nil, to: asked) { _ in
                let isWritten = StandardOutput.write("\(server) gets no new requests\n")
                ExitStatus(isYes: isWritten).end()
            }
        }
        if yes {
            drain()
            dispatchMain()
        }
        AdminOptions.send(.init(.get, "/status", at: .page), nil, to: asked) { response in
            guard let outlook = try? DrainOutlook(without: server, response.content.span) else {
                StandardError.write(Self.unknown("the gateway's page /status can't be read"))
                ExitStatus.no.end()
            }
            guard Self.isConfirmed(outlook) else { ExitStatus.no.end() }
            drain()
        } unanswered: {
            StandardError.write(Self.unknown($0))
        }
        dispatchMain()
    }

    /// - fault: why nothing says which servers are up.
    private static func unknown(_ fault: String) -> String {
        "portcullis: nothing has changed: \(fault); --yes drains without knowing the other servers"
    }

    private static func isConfirmed(_ outlook: DrainOutlook) -> Bool {
        guard !outlook.origins.isEmpty else { return true }
        let names = outlook.origins.joined(separator: ", ")
        StandardError.write(
            "no other server of \(names) is up: requests would be answered 503 origin-down"
        )
        return Confirmation.isGiven {
            "no other server is up; next: see `portcullis origins list`, or add --yes"
        }
    }
}

struct OriginsUndrainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "undrain",
        abstract: "Send a server requests again."
    )

    @OptionGroup var gateway: AdminOptions

    @Argument(help: "The server, as the configuration has it.")
    var server: String

    func run() throws {
        let content = Array(server.utf8)
        try gateway.call(.init(.post, "/origins/undrain", at: .call, content: content)) { _ in
            ExitStatus(isYes: StandardOutput.write("\(server) gets requests again\n"))
        }
    }
}

/// The gateway that a command asks.
struct AdminOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the admin listener."
    )
    var file: String?

    @Option(
        name: .customLong("admin"),
        help: ArgumentHelp(
            """
            In its place: the address of the admin listener, as unix:/run/portcullis/admin.sock or \
            127.0.0.1:9901. No file is read, so that it works whatever is wrong with the files.
            """,
            valueName: "address"
        )
    )
    var address: String?

    @Option(help: "With --admin: the file of the token that this address asks for.")
    var tokenFile: String?

    func validate() throws {
        guard (file == nil) != (address == nil) else {
            throw ValidationError(
                "say which gateway is asked: --config FILE, or --admin ADDRESS, as "
                    + "--admin unix:/run/portcullis/admin.sock"
            )
        }
        guard tokenFile == nil || address != nil else {
            throw ValidationError("--token-file goes with --admin; a configuration names its own")
        }
    }

    /// The gateway; prints every problem and exits 1 where nothing says how it is asked.
    func asked() throws -> AskedGateway {
        if let file { return try LoadedFile.gateway(file) }
        let text = address ?? ""
        let place = text.hasPrefix("/") ? "unix:" + text : text
        guard let address = ServerAddress(text: place, allowsPortZero: false) else {
            StandardError.write(
                "portcullis: --admin \(text): use unix:/path, 127.0.0.1:9901 or another address"
            )
            throw ExitStatus.usage
        }
        let (listener, problems) = ConfigurationLoader.adminListener(
            at: address,
            tokenFile: tokenFile
        )
        for problem in problems { StandardError.write(problem.text) }
        guard let listener else { throw ExitStatus.no }
        return AskedGateway(listeners: [listener], configuration: nil)
    }

    /// Asks the gateway and ends the process: with the closure's status after a success, otherwise
    /// with 1.
    ///
    /// - rule: the rule's id, for a hint where no rule has it.
    func call(
        _ request: AdminCall.Request,
        about rule: String? = nil,
        _ succeeded: @escaping @Sendable (HTTPResponse) -> ExitStatus
    ) throws -> Never {
        let asked = try asked()
        Self.send(request, rule, to: asked) { succeeded($0).end() }
        dispatchMain()
    }

    /// Asks the gateway. The closure gets a success; any other answer ends the process with 1.
    ///
    /// - unanswered: called with the reason where no gateway answers, or the one that does takes no
    ///   such call from this command; before the process ends.
    static func send(
        _ request: AdminCall.Request,
        _ rule: String?,
        to asked: AskedGateway,
        _ succeeded: @escaping @Sendable (HTTPResponse) -> Void,
        unanswered: @escaping @Sendable (String) -> Void = {
            StandardError.write("portcullis: \($0)")
        }
    ) {
        AdminCall.send(request, to: asked.listeners) { result in
            switch result {
            case .success(let response) where response.status == 200: return succeeded(response)
            case .success(let response):
                if let refusal = refusal(of: response) {
                    unanswered(refusal)
                    break
                }
                let ids = asked.configuration?.fileRules.rules.map(\.id) ?? []
                let meant = rule.flatMap { Suggestion.closest(to: $0, among: ids) }
                let store = asked.configuration?.store
                let isFleet = if case .postgresql? = store { true } else { false }
                StandardError.write(Self.text(of: response, meant, isFleet: isFleet))
            case .failure(let fault): unanswered(fault.text)
            }
            ExitStatus.no.end()
        }
    }

    private static func reason(of response: HTTPResponse) -> Substring? {
        response.field("App-Attest-Error").map { $0.prefix { $0 != ";" } }
    }

    /// Why the gateway takes no such call from this command; `nil` where it has judged the call.
    private static func refusal(of response: HTTPResponse) -> String? {
        switch reason(of: response) {
        case "page-unknown":
            "the admin listener of the running gateway serves no such calls; add a listener with "
                + "`- address: unix:/run/portcullis/admin.sock` to `admin`, and restart the gateway"
        case "host-refused":
            "the address is one of another server, which does not answer to localhost"
        case "token-missing":
            "the gateway asks for a token, and this command has none; set `token_file` as the "
                + "gateway has it, or use --token-file with --admin, and run the command as a user "
                + "who may read that file"
        case "token-wrong":
            "the gateway has another token than the file of `token_file` now; reload the gateway, "
                + "which reads the file again"
        case .some, .none: nil
        }
    }

    /// The most problems that are printed.
    private static let problemsMax = 64

    /// The first of the problems that a problem document lists.
    private static func problem(in response: HTTPResponse) -> String {
        problems(in: response, atMost: 1).first ?? "the gateway's log says why"
    }

    private static func problems(
        in response: HTTPResponse,
        atMost count: Int = problemsMax
    ) -> [String] {
        (0..<count).compactMap { place in
            let pointer = JSONPointer(tokens: ["problems", "\(place)"])
            return pointer.string(in: response.content.span).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
    }

    /// - rule: the rule that was probably meant.
    /// - isFleet: whether gateways share a database, which has the orders.
    private static func text(of response: HTTPResponse, _ rule: String?, isFleet: Bool) -> String {
        let reason = reason(of: response)
        switch reason {
        case "no-such-server":
            return "portcullis: no origin has this server; `portcullis origins list` shows all"
        case "no-such-rule":
            let hint = rule.map { "; did you mean \($0)?" } ?? ""
            return "portcullis: no rule has this id\(hint)\(hint.isEmpty ? ";" : "") "
                + "`portcullis rollout` lists them"
        case "rule-verifies-nothing":
            return "portcullis: the rule's file says off or deny, and not what requests must "
                + "carry; write mode: observe there, and reload"
        case "rollout-unsaved" where isFleet:
            // Nothing says whether a database that did not answer has taken it.
            return "portcullis: the order is not confirmed: \(problem(in: response))"
        case "rollout-unsaved":
            return "portcullis: nothing has changed, since the change can't be saved: "
                + "\(problem(in: response)); next: make room on the store's disk; what refuses "
                + "fewer clients, as `--all observe`, holds without it"
        case "rollout-stale":
            return "portcullis: nothing has changed: the fleet has a newer order: "
                + "\(problem(in: response)); look at it with `portcullis rollout`, then give yours"
        case "upgrade-refused": return "portcullis: nothing has changed: \(problem(in: response))"
        case "upgrade-running":
            return "portcullis: nothing has changed: an upgrade is under way; give the order again "
                + "when it has ended"
        case "no-such-refusal":
            let remarks = problems(in: response).map { "portcullis: \($0)\n" }.joined()
            return remarks
                + "portcullis: no refusal of this name is remembered; look for it in the access log"
        case "no-such-gateway":
            return "portcullis: the fleet has no gateway of this name; `portcullis fleet status` "
                + "lists all of them"
        case .some, .none:
            return "portcullis: the gateway answered \(response.status) \(reason ?? "")"
        }
    }
}
