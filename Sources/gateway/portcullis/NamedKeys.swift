import ArgumentParser
import DeviceKey
import KeyCatalog

/// The keys that a command is given by name, one after the other.
struct NamedKeys: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Key ids in base64, or the short names that the log shows.",
            valueName: "key"
        )
    )
    var keys: [String]

    func validate() throws { for name in keys { try KeyStoreOptions.checkName(name) } }

    /// Does something with each key, also behind one that failed; the exit status is 1 then.
    ///
    /// - change: returns what is wrong, to be written behind the key id; `nil` when nothing is.
    func forEach(
        in archive: some KeyArchive,
        _ change: (KeyID) throws -> String?
    ) throws {
        try Self.forEach(keys, in: archive, change)
    }

    static func forEach(
        _ keys: [String],
        in archive: some KeyArchive,
        _ change: (KeyID) throws -> String?
    ) throws {
        var failures = 0
        for name in keys {
            guard let id = try KeyStoreOptions.key(named: name, in: archive) else {
                failures += 1
                continue
            }
            guard let problem = try change(id) else { continue }
            failures += 1
            StandardError.write("\(id.base64) \(problem)")
        }
        if failures > 0 { throw ExitCode(1) }
    }
}
