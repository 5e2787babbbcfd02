import ArgumentParser
import Cryptography
import Glibc
import KeyCatalog

/// Why keys are changed, for those who ask later.
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

    var note: ChangeNote {
        ChangeNote(now: UnixTime.current.seconds, by: Self.actor, why: why)
    }

    /// Who runs this command: the system's number, and its name for it.
    private static var actor: String {
        let number = getuid()
        var bytes = [CChar](repeating: 0, count: 16_384)
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        // The C border: the entry points into `bytes`, which outlives what reads it.
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
