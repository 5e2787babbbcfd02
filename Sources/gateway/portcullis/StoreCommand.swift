import ArgumentParser

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Back up the store of keys, check it, restore it, make its tables, copy it.",
        subcommands: [
            StoreBackupCommand.self, StoreCheckCommand.self, StoreRestoreCommand.self,
            StoreMigrateCommand.self, StoreCopyCommand.self,
        ]
    )
}
