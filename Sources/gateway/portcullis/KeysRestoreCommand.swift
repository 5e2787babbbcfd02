import ArgumentParser
import DeviceKey
import KeyCatalog

struct KeysRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: """
            Undo revocations: the keys are good again, with the counters that they had. A running \
            gateway obeys when this command returns.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @OptionGroup var reason: ChangeNoteOptions

    @OptionGroup var named: NamedKeys

    func run() throws {
        let (archive, _) = try store.administration()
        let note = reason.note
        try named.forEach(in: archive) { id in
            let outcome = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try archive.restore(id, note)
            }
            switch outcome {
            case .restored: StandardOutput.write("\(id.base64) restored\n")
            case .active: StandardOutput.write("\(id.base64) is not revoked\n")
            case .unknown: return "is not stored, or was deleted"
            }
            return nil
        }
    }
}
