import ArgumentParser

struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Look at and change the stored keys, with or without a running gateway.",
        subcommands: [
            KeysListCommand.self, KeysShowCommand.self, KeysImportCommand.self,
            KeysExportCommand.self, KeysRevokeCommand.self, KeysRestoreCommand.self,
            KeysDeleteCommand.self, KeysHistoryCommand.self,
        ]
    )
}
