import ArgumentParser
import ConfigurationReading
import Cryptography
import DeviceKey
import Glibc
import KeyStore

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
            switch try archive.revoke(id, note) {
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
        defer { archive.awaitGateways() }
        try named.forEach(in: archive) { id in
            switch try archive.restore(id, note) {
            case .restored: StandardOutput.write("\(id.base64) restored\n")
            case .active: StandardOutput.write("\(id.base64) is not revoked\n")
            case .unknown: return "is not stored, or was deleted"
            }
            return nil
        }
    }
}

struct KeysDeleteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Forget keys for good. A running gateway obeys when this command returns.",
        discussion: """
            The key is unknown from then on, and its app makes and enrols another one. All that \
            is stored of it is removed. A keyed hash of its id stays, so that the key can't be \
            enrolled again and have its old assertions admitted. Nothing undoes it; to refuse a \
            key for a while, use `keys revoke`.
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

    /// In seconds.
    private static func days(_ text: String) throws -> Int64 {
        guard let age = KeyAge(text) else {
            throw ValidationError("--unused \(text): \(KeyAge.allowed).")
        }
        return age.seconds
    }

    func run() throws {
        let (archive, _) = try store.administration()
        // What was deleted is erased, whatever became of the rest.
        let outcome = Result { try delete(in: archive, reason.note) }
        archive.awaitGateways()
        let erased = try archive.eraseDeleted()
        if erased > 0 || !keys.isEmpty, let why = try archive.wipe() {
            StandardError.write(
                "note: traces of the keys may be left in unused parts of the store's file: "
                    + "\(why); stop the gateway, and give the command again"
            )
        }
        try outcome.get()
    }

    private func delete(in archive: some KeyArchive, _ note: ChangeNote) throws {
        if let unused {
            let before = note.now - (try Self.days(unused))
            let count = try archive.expireAll(unusedSince: before, note)
            StandardOutput.write("\(count) deleted, unused for \(unused)\n")
            return
        }
        try NamedKeys.forEach(keys, in: archive) { id in
            switch try archive.delete(id, note) {
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

/// The reason for a change of keys, for the record.
struct ChangeNoteOptions: ParsableArguments {
    @Option(help: "Why; `keys history` shows it.")
    var why: String?

    func validate() throws {
        guard let why else { return }
        let most = ChangeNote.whyBytesMax
        guard why.utf8.count <= most, why.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else {
            throw ValidationError("--why: use one line of at most \(most) bytes.")
        }
    }

    var note: ChangeNote { ChangeNote(now: UnixTime.current.seconds, by: Self.actor, why: why) }

    /// The note of keys that are deleted here since another store has erased them.
    static var ofErasure: ChangeNote {
        ChangeNote(now: UnixTime.current.seconds, by: actor, why: "erased in another store")
    }

    /// The user of this command: the system's number, and its name.
    private static var actor: String {
        let number = getuid()
        var bytes = [CChar](repeating: 0, count: 16_384)
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        // The C border: the entry points into `bytes`, which outlives its readers.
        let name: String? = bytes.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress,
                getpwuid_r(number, &entry, start, buffer.count, &found) == 0,
                let name = found?.pointee.pw_name
            else { return nil }
            return String(cString: name)
        }
        return name.map { "\($0) (uid \(number))" } ?? "uid \(number)"
    }
}

/// The keys of a command by name, one after the other.
struct NamedKeys: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Key ids in base64, or the short names that the log shows.",
            valueName: "key"
        )
    )
    var keys: [String]

    func validate() throws { for name in keys { try KeyStoreOptions.checkName(name) } }

    /// Runs a closure for each key, also after a failed one; then the exit status is 1.
    ///
    /// - change: returns the problem, to be written after the key id; `nil` for none.
    func forEach(in archive: some KeyArchive, _ change: (KeyID) throws -> String?) throws {
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
        if failures > 0 { throw ExitStatus.no }
    }
}
