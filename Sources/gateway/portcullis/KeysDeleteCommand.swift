import ArgumentParser
import ConfigurationReading
import Cryptography
import DeviceKey
import KeyCatalog

struct KeysDeleteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Forget keys for good. A running gateway obeys when this command returns.",
        discussion: """
            The key is unknown from then on, and its app makes and enrols another one. Receipt, \
            context and times are removed. The key id, the public key and the counter stay, so \
            that nobody enrols the key anew and has its old assertions admitted. Nothing undoes \
            it; to refuse a key for a while, use `keys revoke`.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @OptionGroup var reason: ChangeNoteOptions

    @Option(
        help: ArgumentHelp(
            "Delete all keys that were enrolled and last used longer ago.",
            valueName: "400d"
        )
    )
    var unused: String?

    @Argument(
        help: ArgumentHelp(
            "Key ids in base64, or the short names that the log shows.",
            valueName: "key"
        )
    )
    var keys: [String] = []

    func validate() throws {
        for name in keys { try KeyStoreOptions.checkName(name) }
        guard keys.isEmpty != (unused == nil) else {
            throw ValidationError("Name keys, or use --unused.")
        }
        _ = try unused.map(Self.days)
    }

    /// Seconds.
    private static func days(_ text: String) throws -> Int64 {
        guard let age = KeyAge(text) else {
            throw ValidationError("--unused \(text): \(KeyAge.allowed).")
        }
        return age.seconds
    }

    func run() throws {
        let (archive, _) = try store.administration()
        let note = reason.note
        defer { archive.awaitGateways() }
        if let unused {
            let before = note.now - (try Self.days(unused))
            let count = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try archive.expireAll(unusedSince: before, note)
            }
            StandardOutput.write("\(count) deleted, unused for \(unused)\n")
            return
        }
        try NamedKeys.forEach(keys, in: archive) { id in
            let outcome = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try archive.delete(id, note)
            }
            switch outcome {
            case .deleted: StandardOutput.write("\(id.base64) deleted\n")
            case .alreadyDeleted(let second):
                let moment = UnixTime(seconds: second).iso8601
                StandardOutput.write("\(id.base64) was deleted at \(moment)\n")
            case .unknown: return "is not stored"
            }
            return nil
        }
    }
}
