import ArgumentParser
import Configuration
import Dispatch
import Gateway

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway. TERM drains and ends, HUP reloads the configuration."
    )

    @Argument(help: "The configuration file.")
    var file: String

    func run() throws {
        let loaded = ConfigurationLoader.load(file)
        for problem in loaded.problems { StandardError.write(problem.text) }
        guard let configuration = loaded.configuration else {
            StandardError.write("\(file): refused; nothing was started")
            throw ExitCode(1)
        }
        do throws(GatewayError) {
            try GatewayServer.run(configuration, file: file)
        } catch {
            StandardError.write("portcullis: \(error)")
            throw ExitCode(1)
        }
        dispatchMain()
    }
}
