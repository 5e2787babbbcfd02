import CLinux
import ConfigurationReading
import Glibc
import Logging

/// The privileges of the process. They are dropped between binding the addresses and opening the
/// store.
enum Privileges {
    /// Prevents executed programs from gaining privileges. Called while the process has one thread:
    /// threads that Dispatch starts later inherit it; existing ones would not.
    static func forbidNew() {
        guard clinux_forbid_new_privileges() == 0 else {
            preconditionFailure("Privileges: PR_SET_NO_NEW_PRIVS failed, which it never does")
        }
    }

    /// Changes to the user of the configuration, in all threads, and protects the secrets in
    /// memory.
    static func drop(
        _ settings: ProcessSettings,
        _ sockets: [ListenerSet],
        file: String,
        log: Logger
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
