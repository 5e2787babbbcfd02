import ArgumentParser
import ConfigurationReading
import Gateway

struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Look at the gateways that share a database, or drain one.",
        discussion: """
            It asks the database, so it works on any machine with a configuration that names it, \
            whichever gateways answer.
            """,
        subcommands: [
            FleetStatusCommand.self, FleetDrainCommand.self, FleetResumeCommand.self,
        ]
    )
}

struct FleetStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "One line for each gateway: how it stands, the orders and the rules it serves."
    )

    @OptionGroup var fleet: FleetOptions

    func run() throws {
        try fleet.run { (fleet) throws(FleetCommands.Fault) in
            let (lines, warnings) = try fleet.status()
            for warning in warnings { StandardError.write("portcullis: \(warning)") }
            return StandardOutput.write(lines)
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
            throw ExitCode(1)
        }
        do throws(FleetCommands.Fault) {
            guard try body(fleet) else { throw FleetCommands.Fault(text: "") }
        } catch {
            if !error.text.isEmpty { StandardError.write("portcullis: \(error.text)") }
            throw ExitCode(1)
        }
    }
}
