import ArgumentParser
import Cryptography
import DeviceKey
import KeyCatalog

struct KeysRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Refuse keys from now on. A running gateway obeys when this command returns."
    )

    @OptionGroup var store: KeyStoreOptions

    @OptionGroup var reason: ChangeNoteOptions

    @OptionGroup var named: NamedKeys

    func run() throws {
        let (archive, _) = try store.administration()
        let note = reason.note
        defer { archive.awaitGateways() }
        try named.forEach(in: archive) { id in
            let outcome = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try archive.revoke(id, note)
            }
            switch outcome {
            case .revoked: StandardOutput.write("\(id.base64) revoked\n")
            case .alreadyRevoked(let second):
                let moment = UnixTime(seconds: second).iso8601
                StandardOutput.write("\(id.base64) was revoked at \(moment)\n")
            case .unknown: return "is not stored"
            }
            return nil
        }
    }
}
