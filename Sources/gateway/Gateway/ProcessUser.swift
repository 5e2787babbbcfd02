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
