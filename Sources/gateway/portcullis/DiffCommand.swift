import ArgumentParser
import ConfigurationReading
import Gateway

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "List the endpoints that another configuration treats otherwise.",
        discussion: """
            Compares modes, rollouts, what requests must carry, apps and origins, rule by rule, \
            and which rule answers. What `portcullis rollout` has ordered beside NEW is told, too.
            """
    )

    @Argument(help: "The configuration as it is.")
    var old: String

    @Argument(help: "The configuration as it is to be.")
    var new: String

    func run() throws {
        let (before, after) = (
            try LoadedFile.configuration(old), try LoadedFile.configuration(new)
        )
        let orders = RolloutFile.book(of: after)
        if let problem = orders.problem { StandardError.write(problem.text) }
        let difference = ConfigurationDifference(from: before, to: after, orders: orders.book)
        guard StandardOutput.write(difference.text), orders.problem == nil else {
            throw ExitCode(1)
        }
    }
}
