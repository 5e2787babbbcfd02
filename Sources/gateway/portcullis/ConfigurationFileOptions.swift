import ArgumentParser

/// The configuration of a command: its argument, or `--config` as in the commands for a running
/// gateway.
struct ConfigurationFileOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The configuration file.", valueName: "file"))
    var argument: String?

    @Option(name: .customLong("config"), help: "The configuration file, in place of the argument.")
    var option: String?

    /// Its path. ``validate()`` has found one.
    var path: String { argument ?? option ?? "" }

    func validate() throws {
        if argument == nil, option == nil {
            throw ValidationError("Missing expected argument '<file>'")
        }
        if argument != nil, option != nil {
            throw ValidationError("Name the configuration once: as the argument or with --config.")
        }
    }
}
