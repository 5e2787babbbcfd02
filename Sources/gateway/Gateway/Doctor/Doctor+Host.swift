import CLinux
import ConfigurationReading
import EventLoops
import Foundation
import Glibc
import HTTPWire
import Proxy
import Rules

// Checks of the machine: clock, descriptors, addresses.
extension Doctor {
    /// 2026-01-01. No version of this program is older.
    private static let earliest: Int64 = 1_767_225_600

    /// Certificates, attestations and dated rollouts depend on the clock.
    static var clock: DoctorFinding {
        guard time(nil) >= earliest else {
            return .error(
                .clock,
                "the clock of this machine is years behind: certificates and attestations will "
                    + "be refused as not valid yet",
                next: "set it, and have it kept right: timedatectl set-ntp true"
            )
        }
        switch clinux_clock_is_kept() {
        case 1: return .ok(.clock, "a program keeps the clock right")
        case 0:
            return .warning(
                .clock,
                "no program keeps the clock right; when it is minutes off, certificates and "
                    + "attestations are refused, and dated rollouts go wrong",
                next: "timedatectl set-ntp true, or install chrony; nothing in a container or "
                    + "virtual machine whose host keeps the clock"
            )
        default: return .ok(.clock, "the kernel does not say whether the clock is kept right")
        }
    }

    /// A gateway with fewer is full at some thousand clients.
    private static let descriptorsWanted: UInt64 = 8_192

    /// - configuration: the configuration that needs them; `nil` where it is invalid.
    static func descriptors(_ configuration: GatewayConfiguration?) -> DoctorFinding {
        let most = DescriptorLimit.most
        guard most < 1 << 30 else { return .ok(.descriptors, "there is no limit") }
        let requests = most / 8 * 7 / 2
        let found = "\(most) may be open, enough for about \(requests) requests at a time"
        guard most < descriptorsWanted else { return .ok(.descriptors, found) }
        return .warning(
            .descriptors,
            found + "; the gateway accepts nobody while they are used up",
            next: "ulimit -Hn 262144 where it is started, or LimitNOFILE=262144 in its unit"
        )
    }

    // MARK: Addresses

    /// Whether the gateway's addresses can be bound here. `check` checks sockets in the file
    /// system.
    static func addresses(_ configuration: GatewayConfiguration) -> [DoctorFinding] {
        let all = configuration.listeners.map(\.address) + configuration.admin.map(\.address)
        return all.compactMap { address in
            guard case .ip(let ip, let port) = address, port != 0,
                let socket = address.socketAddress
            else { return nil }
            switch trial(socket) {
            case 0: return .ok(.addresses, "\(address.text) is free")
            case EADDRINUSE: return holder(of: port, address, configuration)
            case EACCES:
                return .error(
                    .addresses,
                    "\(address.text): user \(geteuid()) may not listen on a port below 1024",
                    next: "start it as root with process.user, or with CAP_NET_BIND_SERVICE as "
                        + "the systemd unit does"
                )
            case EADDRNOTAVAIL:
                return .error(
                    .addresses,
                    "\(address.text): no interface of this machine has \(ip.text)",
                    next: "an address that `ip address` shows, or 0.0.0.0 or [::] for all"
                )
            case let code:
                return .error(
                    .addresses,
                    "\(address.text): \(String(cString: strerror(code)))",
                    next: "another address"
                )
            }
        }
    }

    /// Binds an address as a start does, and releases it.
    ///
    /// - Returns: the code of the error; 0 for none.
    private static func trial(_ address: SocketAddress) -> Int32 {
        do throws(SocketError) {
            close(try Listener.bound(to: address))
            return 0
        } catch {
            return error.code
        }
    }

    private static func holder(
        of port: UInt16,
        _ address: ServerAddress,
        _ configuration: GatewayConfiguration
    ) -> DoctorFinding {
        let next = "stop that program, or choose another port (`ss -ltnp` lists them)"
        guard let holder = PortHolder(listeningOn: port) else {
            // It may also be a gateway: only root can inspect processes of other users.
            return .warning(
                .addresses,
                "\(address.text) is held by a process of another user",
                next: "nothing when it is a gateway; else \(next)"
            )
        }
        let found = "\(address.text) is held by \(holder.text)"
        if holder.isGateway {
            let file = PortHolder.resolved(
                configuration.place(of: "").file,
                in: FileManager.default.currentDirectoryPath
            )
            guard let other = holder.configuration, other != file else {
                return .ok(.addresses, found + ", a gateway of this configuration")
            }
            return .error(
                .addresses,
                found + ", a gateway of another configuration, \(other)",
                next: "choose another address here or there, or stop that gateway"
            )
        }
        if holder.isServiceManager { return .ok(.addresses, found + ", for portcullis.socket") }
        return .error(.addresses, found, next: next)
    }
}

// Checks of the disk for keys and large content.
extension Doctor {
    /// With less, SQLite's log and a merge of many counters may not fit.
    private static let freeWanted: UInt64 = 1 << 30
    /// With less, the counters of the next days don't fit.
    private static let freeNeeded: UInt64 = 64 << 20
    /// A slower commit delays every request that waits for one.
    private static let syncSlowMillis: UInt64 = 50

    static func disk(_ configuration: GatewayConfiguration) -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        if let file = configuration.store.file {
            let folder = WholeFile.folder(of: file)
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
    private static func fileSystem(of folder: String) -> DoctorFinding? {
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

    private static func space(for file: String, in folder: String) -> DoctorFinding? {
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
    private static func trial(in folder: String) -> DoctorFinding {
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

    private static func unwritable(_ folder: String, _ code: Int32) -> DoctorFinding {
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
