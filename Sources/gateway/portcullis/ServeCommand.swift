import ArgumentParser
import ConfigurationReading
import Dispatch
import Encodings
import Foundation
import Gateway
import Glibc
import HTTPWire
import KeyStore
import Proxy
import SQLiteKeyStore
import Services

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway. TERM drains and ends, HUP reloads the configuration."
    )

    @OptionGroup var place: ConfigurationFileOptions

    @Flag(
        help: """
            Start although the key store is older than what was used here, empty or missing. What \
            was stored since is lost: assertions admitted since can be replayed where a rule asks \
            for no challenge, keys revoked since pass, devices enrolled since enrol again.
            """
    )
    var acceptOlderStore = false

    private var file: String { place.path }

    func run() throws {
        GatewayServer.deferSignals()
        // Before the program's file may be another one.
        var surroundings = surroundings
        // First, while only the given descriptors are open.
        let environment = ProcessInfo.processInfo.environment
        var inherited = InheritedSockets(environment)
        let predecessor = try Self.predecessor(environment)
        if let predecessor { inherited = predecessor.sockets }
        // They are not for programs that this one may start.
        for name in [
            "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
            "LISTEN_FDNAMES", "PORTCULLIS_HANDOVER",
        ] { unsetenv(name) }
        let loaded = ConfigurationLoader.load(file)
        // One message, since each may have to wait for a reader.
        if !loaded.problems.isEmpty {
            Self.say(loaded.problems.map(\.text).joined(separator: "\n"))
        }
        guard let configuration = loaded.configuration else {
            let problems = loaded.problems.map(\.text).joined(separator: "\n")
            predecessor?.refuse(GatewayError(problems, hint: "`portcullis check` says more."))
            Self.say("\(file): refused; nothing was started")
            throw ExitStatus.no
        }
        do throws(GatewayError) {
            surroundings.supervisor = try Supervisor(environment)
            surroundings.inherited = inherited
            surroundings.predecessor = predecessor
            try GatewayServer.run(configuration, file: file, surroundings: surroundings)
        } catch {
            predecessor?.refuse(error)
            Self.say("portcullis: \(error)")
            throw ExitStatus.no
        }
        dispatchMain()
    }

    /// The process to take over from; `nil` for a first start.
    private static func predecessor(_ environment: [String: String]) throws -> Predecessor? {
        do throws(GatewayError) {
            return try Predecessor(environment)
        } catch {
            say("portcullis: \(error)")
            throw ExitStatus.no
        }
    }

    private var surroundings: GatewaySurroundings {
        var surroundings = GatewaySurroundings()
        guard acceptOlderStore else { return surroundings }
        surroundings.openJournal = { path in
            Result { () throws(StoreProblem) in
                let journal = try SQLiteKeyJournal(path: path, age: .any)
                let found = journal.accepted.map { "\($0.path): \($0.detail); accepted" }
                Self.say("warning: --accept-older-store: \(found ?? "nothing is older; remove it")")
                return journal
            }
        }
        return surroundings
    }

    private static func say(_ text: String) {
        StandardError.write(text, patienceMillis: StandardError.startPatienceMillis)
    }
}

struct UpgradeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upgrade",
        abstract: "Have a running gateway hand over to the program that is installed now.",
        discussion: """
            The gateway starts the program that is now at the path by which it was started itself, \
            links not resolved. That one takes over listeners, store and challenges. The old \
            process finishes its requests and ends. When the new one can't serve, nothing changes, \
            and this says why.
            """
    )

    @OptionGroup var gateway: AdminOptions

    func run() throws {
        let request = AdminCall.Request(
            .post,
            "/upgrade",
            at: .call,
            waiting: Self.waitMilliseconds
        )
        try gateway.call(request) { response in
            if let doubt = Self.text("doubt", of: response) {
                StandardError.write("portcullis: warning: \(doubt)")
            }
            return ExitStatus(isYes: StandardOutput.write(Self.text(of: response)))
        }
    }

    private static func text(_ member: String, of response: HTTPResponse) -> String? {
        JSONPointer(tokens: [member]).string(in: response.content.span).map {
            String(decoding: $0, as: UTF8.self)
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
        let program = ["version", "program"].map { text($0, of: response) ?? "not known" }
        return "process \(process) serves, portcullis \(program.joined(separator: ", ")); "
            + "accepting paused for \(pause / 1_000).\(thousandths) ms\n"
    }
}

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look for what commonly goes wrong around a gateway.",
        discussion: """
            Clock, descriptors, addresses, certificates, disk and origins, as they are on this \
            machine and for this user. It binds addresses for a moment, writes and deletes a file \
            beside the store, and sends each server of an origin one request: that of its check, \
            or HEAD /. Exit status 1 when something is wrong; warnings don't change it.

            With --through it sends requests to the public address instead, and says what proxies \
            and CDNs change of them before this gateway sees them. The gateway has to run, and \
            answers these requests itself: no rule and no origin sees them.
            """
    )

    @OptionGroup var place: ConfigurationFileOptions

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Try the proxies and CDNs at this address, as https://api.example.com.",
            valueName: "url"
        )
    )
    var through: String?

    private var file: String { place.path }

    func run() throws {
        let printsJSON = json
        @Sendable func end(_ report: DoctorReport) {
            StandardOutput.write(printsJSON ? report.json.pretty + "\n" : report.text)
            ExitStatus(isYes: report.exitStatus == 0).end()
        }
        guard let through else {
            Doctor.examine(file, ended: end)
            dispatchMain()
        }
        guard let front = FrontAddress(through) else {
            throw ValidationError("--through is http:// or https://, a host, and perhaps a port")
        }
        Doctor.examine(file, through: front, ended: end)
        dispatchMain()
    }
}
