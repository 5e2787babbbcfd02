import CLinux
import ConfigurationReading
import Glibc
import Logging

/// The user of the process after root has started it.
struct ProcessUser {
    let name: String
    let uid: uid_t
    let gid: gid_t

    /// The user that a configuration names; `nil` when it names none, or the process already is
    /// that user.
    ///
    /// - Throws: when there is no such user or group, or when only root could change to it.
    init?(_ settings: ProcessSettings) throws(GatewayError) {
        guard let name = settings.user else { return nil }
        // The entries live until the next look-up, so the needed values are copied at once.
        guard let entry = getpwnam(name)?.pointee else {
            throw GatewayError(
                "process.user: there is no user \(name)",
                hint: "Make one: useradd --system --shell /usr/sbin/nologin \(name)"
            )
        }
        self.name = name
        uid = entry.pw_uid
        if let group = settings.group {
            guard let entry = getgrnam(group)?.pointee else {
                throw GatewayError(
                    "process.group: there is no group \(group)",
                    hint: "Make one: groupadd --system \(group)"
                )
            }
            gid = entry.gr_gid
        } else {
            gid = entry.pw_gid
        }
        guard uid != 0 else {
            throw GatewayError(
                "process.user: \(name) is root itself",
                hint: "Name a user that owns nothing but the store."
            )
        }
        guard geteuid() != uid else { return nil }
        guard geteuid() == 0 else {
            throw GatewayError(
                "process.user: only root can become \(name), and this is user \(geteuid())",
                hint: "Start it as root, or as \(name), or leave process.user out.",
                isAboutWhoStarts: true
            )
        }
    }

    /// Changes to the user, with its groups, permanently and in all threads.
    ///
    /// - Throws: when the system refuses, or would allow the process to become root again.
    func become() throws(GatewayError) {
        // Groups first: without root they can't be changed.
        guard initgroups(name, gid) == 0 else { throw failure("initgroups") }
        guard setgid(gid) == 0 else { throw failure("setgid") }
        guard setuid(uid) == 0 else { throw failure("setuid") }
        guard getuid() == uid, geteuid() == uid, getgid() == gid, getegid() == gid,
            setuid(0) != 0, seteuid(0) != 0, setgid(0) != 0 || gid == 0
        else {
            throw GatewayError(
                "process.user: as \(name) it could become root again",
                hint: "Start it without kept capabilities (capsh --print shows securebits)."
            )
        }
    }

    /// The text for logs: `portcullis (uid 64119, gid 64119)`.
    var text: String { "\(name) (uid \(uid), gid \(gid))" }

    private func failure(_ call: String) -> GatewayError {
        GatewayError(
            "process.user: can't become \(name): \(call): \(String(cString: strerror(errno)))",
            hint: "Root needs CAP_SETUID and CAP_SETGID for it; or start it as \(name)."
        )
    }
}

// Privilege drop, between binding the addresses and opening the store.
extension GatewayServer {
    /// Prevents executed programs from gaining privileges. Called while the process has one thread:
    /// threads that Dispatch starts later inherit it; existing ones would not.
    static func forbidNewPrivileges() {
        guard clinux_forbid_new_privileges() == 0 else {
            preconditionFailure("GatewayServer: PR_SET_NO_NEW_PRIVS failed, which it never does")
        }
    }

    /// Changes to the user of the configuration, in all threads, and protects the secrets in
    /// memory.
    static func giveUpPrivileges(
        _ settings: ProcessSettings,
        _ sockets: [ListenerSet],
        _ file: String,
        _ log: Logger
    ) throws(GatewayError) {
        if let user = try ProcessUser(settings) {
            for set in sockets { set.give(to: user) }
            try user.become()
            log.notice("serving as \(user.text)")
            for problem in Preparation.readable(file).errors {
                log.warning("as \(user.name) a reload will be refused: \(problem.text)")
            }
        } else if geteuid() == 0 {
            log.warning("serving as root; name a user in process.user")
        }
        ProcessMemory.set(isDumpable: settings.allowsCoreDumps)
    }
}

/// Keeps secrets in memory (TLS keys, the challenges' key) out of files and away from other
/// processes of the same user.
enum ProcessMemory {
    /// Forbids or allows core files and access to the memory.
    ///
    /// Tools show the limit, and children inherit it. It does not affect a core_pattern that is a
    /// pipe (core(5)). A process that is not dumpable is protected from that, and also from ptrace
    /// (prctl(2)). The kernel resets this flag when the user changes, so this call comes after
    /// that.
    static func set(isDumpable: Bool) {
        if !isDumpable {
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        }
        guard clinux_set_dumpable(isDumpable ? 1 : 0) == 0 else {
            preconditionFailure("ProcessMemory: PR_SET_DUMPABLE failed, which it never does")
        }
    }
}

/// Whether the gateway can write a file or into a folder, checked without writing.
enum WriteAccess {
    case granted
    /// The text says what can't be written, and why.
    case refused(String)

    /// A file that exists or can be created. `makesOthers`: files are created beside it, too.
    ///
    /// - user: the user to which root changes before it writes; `nil` for the user of this process.
    init(toFile path: String, makesOthers: Bool = false, as user: ProcessUser?) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT != S_IFDIR else {
                self = .refused("\(path), which is a folder")
                return
            }
            self.init(path, mode: W_OK, as: user)
            guard makesOthers, case .granted = self else { return }
        }
        self.init(toFolder: WholeFile.folder(of: path), as: user)
    }

    /// A folder in which files are created.
    init(toFolder path: String, as user: ProcessUser?) {
        self.init(path.isEmpty ? "." : path, mode: W_OK | X_OK, as: user)
    }

    private init(_ path: String, mode: Int32, as user: ProcessUser?) {
        // With the effective user: access(2) uses the real one.
        let result =
            user.map { clinux_access_as($0.name, $0.uid, $0.gid, path, mode) }
            ?? faccessat(AT_FDCWD, path, mode, AT_EACCESS)
        guard result != 0 else {
            self = .granted
            return
        }
        let reason = String(cString: strerror(errno))
        self = .refused("\(path), which user \(user?.uid ?? geteuid()) can't write (\(reason))")
    }
}

/// The number of descriptors that the process may open.
enum DescriptorLimit {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Descriptors of the process besides event loops and listeners: the standard streams, those of
    /// Dispatch (counted: 6), the store with its journal (8), logs, and files while they are read.
    private static let own = 24
    /// For each event loop: one that wakes it and one that it watches with.
    private static let ofLoop = 2
    /// For one client with its origin, and for callers of the admin listener.
    private static let ofService = 8

    /// Raises the soft limit to the hard one.
    ///
    /// - Throws: when the hard limit is too low to serve. Dispatch silently ends a process that has
    ///   no descriptor left for it.
    static func raise(loops: Int, _ configuration: GatewayConfiguration) throws(GatewayError) {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
        if let shortage = shortage(of: current, loops, configuration) {
            throw shortage
        }
    }

    /// The error that ``raise(loops:_:)`` would throw; raises nothing.
    static func shortage(loops: Int, _ configuration: GatewayConfiguration) -> GatewayError? {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return nil }
        return shortage(of: UInt64(limit.rlim_max), loops, configuration)
    }

    private static func shortage(
        of all: UInt64,
        _ loops: Int,
        _ configuration: GatewayConfiguration
    ) -> GatewayError? {
        let (listeners, admins) = (configuration.listeners.count, configuration.admin.count)
        // Each admin listener has an event loop of its own.
        let needed = own + ofService + (loops + admins) * ofLoop + loops * listeners + admins
        guard all < UInt64(needed) else { return nil }
        return GatewayError(
            """
            only \(all) descriptors may be open; event_loops: \(loops), listeners: \(listeners) \
            need \(needed), and two more for each request under way
            """,
            hint: """
                Raise the limit (ulimit -n 1024, LimitNOFILE= in a unit), or lower `event_loops`.
                """
        )
    }

    /// The number of descriptors that clients may use together with all other uses. An eighth is
    /// reserved for connections to origins and for files. If clients could use all of them, the
    /// gateway could forward nothing for connected clients. (nginx too stops accepting when an
    /// eighth of its connections is left.)
    static var forClients: Int32 {
        let all = current
        return all == 0 ? .max : Int32(clamping: all - reserve)
    }

    static var reserve: UInt64 { current / 8 }

    /// The hard limit, to which the gateway raises its own; 0 when it can't be read.
    static var most: UInt64 {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_max) : 0
    }

    /// The soft limit; 0 when it can't be read.
    static var current: UInt64 {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_cur) : 0
    }
}
