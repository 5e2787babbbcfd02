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

    @Argument(
        help: ArgumentHelp(
            "Key ids in base64, or the short names that the log shows.",
            valueName: "key"
        )
    )
    var keys: [String]

    func validate() throws { for name in keys { try KeyStoreOptions.checkName(name) } }

    func run() throws {
        let (archive, _) = try store.administration()
        var failures = 0
        for name in keys {
            guard let id = try KeyStoreOptions.key(named: name, in: archive) else {
                failures += 1
                continue
            }
            let outcome = try KeyStoreOptions.attempt { () throws(StoreProblem) in
                try archive.revoke(id, now: UnixTime.current.seconds)
            }
            switch outcome {
            case .revoked: StandardOutput.write("\(id.base64) revoked\n")
            case .alreadyRevoked(let second):
                let moment = UnixTime(seconds: second).iso8601
                StandardOutput.write("\(id.base64) was revoked at \(moment)\n")
            case .unknown:
                failures += 1
                StandardError.write("\(id.base64) is not stored")
            }
        }
        if failures > 0 { throw ExitCode(1) }
    }
}
