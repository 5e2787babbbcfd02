import ArgumentParser
import Dispatch
import Gateway
import Glibc
import JSONText
import Origins

struct UpgradeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upgrade",
        abstract: "Have a running gateway hand over to the program that is installed now.",
        discussion: """
            The gateway starts the program at its own path, which takes over listeners, store and \
            challenges. The old process finishes its requests and ends. When the new one can't \
            serve, nothing changes, and this says why.
            """
    )

    @OptionGroup var gateway: AdminOptions

    func run() throws {
        try gateway.call(.post, "/upgrade", waiting: Self.waitMilliseconds) { response in
            StandardOutput.write(Self.text(of: response)) ? 0 : 1
        }
    }

    /// Longer than the gateway tries.
    private static let waitMilliseconds: UInt64 = 110_000

    private static func text(of response: HTTPResponse) -> String {
        let members: Set = ["process", "pause_microseconds"]
        guard let document = JSONDocument(response.content.span, members: members),
            let process = document.integer("process"),
            let pause = document.integer("pause_microseconds")
        else { return "the gateway's answer can't be read; its log says how it went\n" }
        let thousandths = String(pause % 1_000 + 1_000).dropFirst()
        return
            "process \(process) serves; accepting paused for \(pause / 1_000).\(thousandths) ms\n"
    }
}
