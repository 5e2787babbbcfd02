import CLinux
import ConfigurationReading
import Glibc
import Logging

// What the process gives up between binding its addresses and opening its store.
extension GatewayServer {
    /// Nothing that the process executes gains privileges. Called while it has one thread: the
    /// threads that Dispatch starts later inherit it, and no others.
    static func forbidNewPrivileges() {
        guard clinux_forbid_new_privileges() == 0 else {
            preconditionFailure("GatewayServer: PR_SET_NO_NEW_PRIVS failed, which it never does")
        }
    }

    /// Becomes the user of the configuration, with all threads, and hides what is secret in memory.
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
