import ArgumentParser

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Copy the store of keys, check it, put a copy back, make its tables.",
        subcommands: [
            StoreBackupCommand.self, StoreCheckCommand.self, StoreRestoreCommand.self,
            StoreMigrateCommand.self,
        ]
    )
}
