import CLinux
import ConfigurationReading
import Glibc
import Proxy
import Rules

// Checks of the disk for keys and large content.
extension Doctor {
    /// With less, SQLite's log and a merge of many counters may not fit.
    private static let freeWanted: UInt64 = 1 << 30
    /// With less, the counters of the next days don't fit.
    private static let freeNeeded: UInt64 = 64 << 20
    /// A slower commit delays every request that waits for one.
    private static let syncSlowMillis: UInt64 = 50

    static func disk(_ configuration: GatewayConfiguration) -> [Finding] {
        var findings: [Finding] = []
        if let file = configuration.store.file {
            let folder = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
            findings += [fileSystem(of: folder), space(for: file, in: folder)].compactMap(\.self)
            findings.append(trial(in: folder))
        }
        let limits = configuration.limits
        let (limit, most) =
            limits.filesAreMemory
            ? ("held_memory", limits.heldMemoryMax) : ("held_disk", limits.heldDiskMax)
        let held = UInt64(max(0, most))
        let spill = configuration.spillFolder
        if held > 0, let free = free(in: spill), free < held {
            findings.append(
                .warning(
                    .disk,
                    "\(spill) has \(mebibytes(free)) free, and limits.\(limit) allows "
                        + "\(mebibytes(held)): uploads that are held may be answered 503",
                    next: "a spill_folder with room, or a smaller limits.\(limit)"
                )
            )
        }
        return findings
    }

    /// File systems on which a database is not safe (magic.h of Linux).
    private static func fileSystem(of folder: String) -> Finding? {
        let remote: [UInt64: String] = [
            0x6969: "NFS", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB", 0x0102_1997: "9P",
        ]
        let type = clinux_file_system(folder)
        if let name = remote[type] {
            return .error(
                .store,
                "\(folder) is on \(name), where locks and the database's shared memory don't hold",
                next: "put the store on a disk of this machine"
            )
        }
        switch type {
        case 0x0102_1994:
            return .warning(
                .store,
                "\(folder) is in memory (tmpfs): all keys are lost when the machine starts anew",
                next: "put the store on a disk; nothing for a trial"
            )
        case 0x794C_7630:
            return .warning(
                .store,
                "\(folder) is in a container's own layer (overlay): all keys go with the container",
                next: "mount a volume there; nothing for a trial"
            )
        default: return nil
        }
    }

    private static func space(for file: String, in folder: String) -> Finding? {
        guard let free = free(in: folder) else { return nil }
        let found = "\(folder) has \(mebibytes(free)) free"
        if free < freeNeeded {
            return .error(
                .store,
                found + "; enrolments and requests that wait for the disk will be answered 503",
                next: "make room, or move the store"
            )
        }
        if free < freeWanted {
            return .warning(.store, found, next: "1 GiB is on the safe side; make room")
        }
        return .ok(.store, found)
    }

    /// Writes a file beside the store, synchronises it, and deletes it.
    private static func trial(in folder: String) -> Finding {
        let path = "\(folder)/.portcullis-doctor-\(getpid())"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return unwritable(folder, errno) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let bytes = [UInt8](repeating: 0x70, count: 4_096)
        let start = clinux_monotonic_nanoseconds()
        guard write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else {
            return unwritable(folder, errno)
        }
        let millis = (clinux_monotonic_nanoseconds() - start) / 1_000_000
        guard millis >= syncSlowMillis else {
            return .ok(.store, "\(folder) takes writes; 4 KiB were on the disk within \(millis) ms")
        }
        return .warning(
            .store,
            "\(folder) took \(millis) ms to put 4 KiB on the disk; requests without a challenge "
                + "wait that long",
            next: "a faster disk, or challenge: required, which does not wait; look again when "
                + "the disk is idle"
        )
    }

    private static func unwritable(_ folder: String, _ code: Int32) -> Finding {
        .error(
            .store,
            "\(folder) takes no file of user \(geteuid()): \(String(cString: strerror(code)))",
            next: "run this as the gateway's user; give it the folder (chown), make room, or "
                + "choose another one in store.sqlite"
        )
    }

    // MARK: Facts

    /// The bytes that a user who is not root may still write; `nil` where they can't be read.
    private static func free(in folder: String) -> UInt64? {
        var facts = statvfs()
        guard statvfs(folder, &facts) == 0 else { return nil }
        let (bytes, overflows) = UInt64(facts.f_bavail)
            .multipliedReportingOverflow(by: UInt64(facts.f_frsize))
        return overflows ? .max : bytes
    }

    private static func mebibytes(_ bytes: UInt64) -> String { "\(bytes >> 20) MiB" }
}
