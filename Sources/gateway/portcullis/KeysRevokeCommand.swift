import AppAttest
import ArgumentParser
import Cryptography
import SQLiteKeyStore

struct KeysRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Refuse keys from now on. A running gateway obeys when this command returns."
    )

    @OptionGroup var store: KeyStoreOptions

    @Argument(help: ArgumentHelp("Key ids in base64.", valueName: "key-id"))
    var keyIDs: [String]

    func validate() throws {
        for text in keyIDs where KeyID(base64: text) == nil {
            throw ValidationError("\(text) is no key id: base64 of 32 octets, 44 characters.")
        }
    }

    func run() throws {
        let (keys, _) = try store.administration()
        var unknown = 0
        for id in keyIDs.compactMap({ KeyID(base64: $0) }) {
            let outcome = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try keys.revoke(id, now: UnixTime.current.seconds)
            }
            switch outcome {
            case .revoked: StandardOutput.write("\(id.base64) revoked\n")
            case .alreadyRevoked(let second):
                let moment = UnixTime(seconds: second).iso8601
                StandardOutput.write("\(id.base64) was revoked at \(moment)\n")
            case .unknown:
                unknown += 1
                StandardError.write("\(id.base64) is not stored")
            }
        }
        if unknown > 0 { throw ExitCode(1) }
    }
}
