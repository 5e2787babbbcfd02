import CLinux
import Glibc

/// Keeps what is in memory (TLS keys, the challenges' key) out of files and from other processes of
/// the same user.
enum ProcessMemory {
    /// Forbids core files and looks into the memory, or allows them.
    ///
    /// The limit is what tools show and what children inherit. It does not bind a core_pattern that
    /// is a pipe (core(5)); that the process is not dumpable does, and keeps ptrace away as well
    /// (prctl(2)). The kernel decides the latter anew when the user changes, so this comes behind.
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
