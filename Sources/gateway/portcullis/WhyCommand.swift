import ArgumentParser
import DeviceKey
import Gateway
import Origins

struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Say why a running gateway has refused a request, or would have.",
        discussion: """
            What was asked, what was found, which check failed, and what the client does next, the \
            latest first. The gateway remembers some hundred refusals of each lane, and forgets \
            them at a restart. Requests that were only observed are told, too.
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
        // A key id does not leave the command: the short name stands for it.
        let name = KeyID(base64: self.name).map(\.logName) ?? self.name
        try gateway.call(.post, json ? "/why/json" : "/why", name) { response in
            StandardOutput.write(String(decoding: response.content, as: UTF8.self)) ? 0 : 1
        }
    }
}
