import ArgumentParser
import ConfigurationReading
import Gateway

struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Look at the gateways that share a database, drain one, or upgrade all.",
        discussion: """
            It asks the database, so it works on any machine with a configuration that names it, \
            whichever gateways answer.
            """,
        subcommands: [
            FleetStatusCommand.self, FleetDrainCommand.self, FleetResumeCommand.self,
            FleetUpgradeCommand.self,
        ]
    )
}

struct FleetStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "One line for each gateway: how it stands, the orders and the rules it serves.",
        discussion: """
            Exit status 1 where a gateway is silent: it has written nothing for ten seconds, and \
            has not said that it ends.
            """
    )

    @OptionGroup var fleet: FleetOptions

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func run() throws {
        try fleet.run { (fleet) throws(FleetCommands.Fault) in
            let status = try fleet.status()
            let isWritten = StandardOutput.write(json ? status.json : status.lines)
            // The document has them.
            for warning in json ? [] : status.warnings {
                StandardError.write("portcullis: \(warning)")
            }
            return isWritten && status.isComplete
        }
    }
}

struct FleetDrainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Have balancers send a gateway no new clients, and wait until it has none.",
        discussion: """
            Its probes say that it is not ready, and connections end after their request. Clients \
            that still come are served. It stays so over a restart, until `resume`.
            """
    )

    @OptionGroup var fleet: FleetOptions

    @Option(help: "Why, in one line.")
    var why = ""

    @Option(help: "How many seconds to wait for its connections to end.")
    var wait = 60

    @Argument(help: "The gateway's name, as `fleet status` has it.")
    var name: String

    func run() throws {
        try fleet.run { (fleet) throws(FleetCommands.Fault) in
            let left = try fleet.drain(name, why: why, patience: wait)
            guard left > 0 else { return StandardOutput.write("\(name) is drained\n") }
            StandardError.write(
                "portcullis: \(name) gets no new clients, and still has \(left) connections"
            )
            return false
        }
    }
}

struct FleetResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Have balancers send a gateway clients again, and wait until it is ready."
    )

    @OptionGroup var fleet: FleetOptions

    @Option(help: "How many seconds to wait.")
    var wait = 10

    @Argument(help: "The gateway's name, as `fleet status` has it.")
    var name: String

    func run() throws {
        try fleet.run { (fleet) throws(FleetCommands.Fault) in
            guard try fleet.resume(name, patience: wait) else {
                StandardError.write("portcullis: \(name) has not said that it serves again")
                return false
            }
            return StandardOutput.write("\(name) serves again\n")
        }
    }
}

struct FleetUpgradeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upgrade",
        abstract: "Start one gateway after the other again, and wait until each serves.",
        discussion: """
            Each is drained, then `sh` runs the command of `--run`, whose variable \
            PORTCULLIS_GATEWAY has the gateway's name. When the database has heard of its new \
            process, it is resumed, and the next one follows. The first fault ends the command; \
            that gateway stays drained, and the others serve on. Gateways that are drained already \
            are left out.
            """
    )

    @OptionGroup var fleet: FleetOptions

    @Option(
        name: .customLong("run"),
        help: """
            What starts a gateway again: 'ssh -- "$PORTCULLIS_GATEWAY" systemctl restart \
            portcullis'.
            """
    )
    var command: String

    @Option(help: "Why, in one line.")
    var why = "an upgrade"

    @Option(help: "How many seconds to wait for its connections to end, and for its new process.")
    var wait = 60

    @Argument(help: "Names of gateways, as `fleet status` has them; all without.")
    var names: [String] = []

    func run() throws {
        try fleet.run { (fleet) throws(FleetCommands.Fault) in
            for name in names.isEmpty ? try fleet.upgradable() : names {
                let (before, after) = try fleet.upgrade(name, by: command, why: why, patience: wait)
                let version = before == after ? after : "\(before) → \(after)"
                guard StandardOutput.write("\(name) serves again, version \(version)\n") else {
                    return false
                }
            }
            return true
        }
    }
}

/// The fleet of a command.
struct FleetOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The configuration file of any gateway; it names the database."
    )
    var file: String

    /// - body: returns whether it was done.
    func run(_ body: (FleetCommands) throws(FleetCommands.Fault) -> Bool) throws {
        guard let fleet = FleetCommands(try LoadedFile.configuration(file)) else {
            StandardError.write(
                "portcullis: \(file) has no `store: { postgresql: … }`, which gateways share"
            )
            throw ExitStatus.no
        }
        do throws(FleetCommands.Fault) {
            guard try body(fleet) else { throw FleetCommands.Fault(text: "") }
        } catch {
            if !error.text.isEmpty { StandardError.write("portcullis: \(error.text)") }
            throw ExitStatus.no
        }
    }
}
