import ArgumentParser

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Copy the store of keys, look for what is wrong with it, put a copy back.",
        subcommands: [
            StoreBackupCommand.self, StoreCheckCommand.self, StoreRestoreCommand.self,
        ]
    )
}
