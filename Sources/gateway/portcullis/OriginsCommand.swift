import ArgumentParser
import Dispatch
import Gateway
import Glibc
import JSONText
import Origins

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

    func run() throws {
        try gateway.call(.get, "/origins") { response in
            StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
        }
    }
}

struct OriginsDrainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Send a server no new requests. Those that it has end by themselves.",
        discussion: """
            It stays drained over a reload and an upgrade, until `undrain` or a restart. `origins \
            list` shows how many requests it still has.
            """
    )

    @OptionGroup var gateway: AdminOptions

    @Argument(help: "The server, as the configuration has it.")
    var server: String

    func run() throws {
        try gateway.call(.post, "/origins/drain", server) { _ in
            StandardOutput.write("\(server) gets no new requests\n") ? 0 : 1
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
        try gateway.call(.post, "/origins/undrain", server) { _ in
            StandardOutput.write("\(server) gets requests again\n") ? 0 : 1
        }
    }
}

/// Which gateway a command asks.
struct AdminOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The gateway's configuration file; it names the admin listener."
    )
    var file: String

    /// Asks the gateway and ends the process: with what the closure answers to a success, or with
    /// 1.
    func call(
        _ verb: HTTPRequest.Verb,
        _ page: String,
        _ content: String = "",
        waiting milliseconds: UInt64? = nil,
        _ succeeded: @escaping @Sendable (HTTPResponse) -> Int32
    ) throws -> Never {
        let configuration = try LoadedFile.configuration(file)
        AdminCall.send(
            verb,
            page,
            content: Array(content.utf8),
            to: configuration,
            waiting: milliseconds
        ) { result in
            switch result {
            case .success(let response) where response.status == 200:
                Glibc.exit(succeeded(response))
            case .success(let response): StandardError.write(Self.text(of: response))
            case .failure(let fault): StandardError.write("portcullis: \(fault.text)")
            }
            Glibc.exit(1)
        }
        dispatchMain()
    }

    /// The first of the problems that a problem document lists.
    private static func problem(in response: HTTPResponse) -> String {
        let pointer = JSONPointer(tokens: ["problems", "0"])
        let text = pointer.string(in: response.content.span)
        return text.map { String(decoding: $0, as: UTF8.self) } ?? "the gateway's log says why"
    }

    private static func text(of response: HTTPResponse) -> String {
        let reason = response.field("App-Attest-Error").map { $0.prefix { $0 != ";" } }
        switch reason {
        case "no-such-server":
            return "portcullis: no origin has this server; `portcullis origins list` shows all"
        case "no-such-rule":
            return "portcullis: no rule has this id; `portcullis rollout` lists them"
        case "rule-verifies-nothing":
            return "portcullis: the rule's file says off or deny, and not what requests must "
                + "carry; write mode: observe there, and reload"
        case "rollout-unsaved":
            return "portcullis: nothing has changed, since the change can't be saved: "
                + "\(String(decoding: response.content, as: UTF8.self)); next: make room on the "
                + "store's disk, or write the mode into the configuration and reload"
        case "upgrade-refused":
            return "portcullis: nothing has changed: \(problem(in: response))"
        case "upgrade-running":
            return "portcullis: nothing has changed: an upgrade is under way; give the order again "
                + "when it has ended"
        case "no-such-refusal":
            return
                "portcullis: no refusal of this name is remembered; look for it in the access log"
        case "page-unknown":
            return "portcullis: this admin listener serves no calls; use a Unix socket for "
                + "`admin.address`, or `calls: any`"
        case .some, .none:
            return "portcullis: the gateway answered \(response.status) \(reason ?? "")"
        }
    }
}
