import CLinux
import ConfigurationReading
package import Glibc

/// The start of a program as its own process.
///
/// Dispatch's threads block signals, and a program would inherit that. So it begins with no blocked
/// signals.
package struct ProgramStart {
    package var actions = posix_spawn_file_actions_t()
    package var attributes = posix_spawnattr_t()
    /// The further attributes that are used, of `POSIX_SPAWN_…`.
    package var flags: Int32 = 0

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: the path of the program.
    ///   - arguments: the name first, by custom the path.
    ///   - environment: each as `NAME=VALUE`.
    ///   - process: set when the program was started.
    ///   - prepare: adds actions on descriptors, and other attributes.
    /// - Returns: 0, or the error as `errno`.
    package static func spawn(
        _ path: String,
        _ arguments: [String],
        environment: [String],
        process: inout pid_t,
        prepare: (inout ProgramStart) -> Void
    ) -> Int32 {
        var start = ProgramStart()
        posix_spawn_file_actions_init(&start.actions)
        posix_spawnattr_init(&start.attributes)
        defer {
            posix_spawn_file_actions_destroy(&start.actions)
            posix_spawnattr_destroy(&start.attributes)
        }
        prepare(&start)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&start.attributes, &none)
        posix_spawnattr_setflags(&start.attributes, Int16(start.flags | POSIX_SPAWN_SETSIGMASK))
        var arguments = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for pointer in arguments + variables { free(pointer) } }
        return posix_spawn(
            &process,
            path,
            &start.actions,
            &start.attributes,
            &arguments,
            &variables
        )
    }
}

/// One run of a command that the configuration names.
///
/// It runs without a shell, and its environment has only the given variables and a PATH. It has its
/// own process group, so that its child processes are killed with it.
struct HookRun: Sendable {
    private static let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    /// The interval of checking a process without a descriptor.
    private static let lookMilliseconds: Int32 = 20

    private let words: [String]
    private let environment: [String: String]
    private let timeout: Duration
    /// Opens the descriptor that shows a process's end; less than 0 on failure. Tests use their own
    /// function.
    var openHandle: @Sendable (pid_t) -> Int32 = { clinux_process_handle($0) }

    /// - words: the program's path and its arguments.
    init(_ words: [String], _ environment: [String: String], timeout: Duration) {
        self.words = words
        self.environment = environment.merging(["PATH": Self.path]) { given, _ in given }
        self.timeout = timeout
    }

    /// Runs it, and waits for its end, or kills it when its time is over.
    ///
    /// - Returns: the failure, for the log; `nil` for status 0.
    func run() -> String? {
        var process: pid_t = 0
        let error = spawn(&process)
        guard error == 0 else { return "it can't be started: \(String(cString: strerror(error)))" }
        let hasEnded = waits(for: process)
        // The group is that of the process. Its status was not fetched yet, so no other process can
        // have its id.
        if !hasEnded { kill(-process, SIGKILL) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        if !hasEnded { return "it took longer than \(timeout.settingText), and was killed" }
        // wait(2): the low seven bits are the signal, the next byte is the status.
        let signal = status & 0x7F
        guard signal == 0 else { return "it was ended by signal \(signal)" }
        let code = status >> 8 & 0xFF
        return code == 0 ? nil : "it ended with status \(code)"
    }

    /// Whether it ends in time.
    private func waits(for process: pid_t) -> Bool {
        let handle = openHandle(process)
        defer { if handle >= 0 { close(handle) } }
        let end = ContinuousClock.now + timeout
        while true {
            let left = (end - .now) / .milliseconds(1)
            guard left > 0 else { return false }
            guard handle >= 0 else {
                // No descriptor is free, or the system has no pidfd_open(2).
                if hasEnded(process) { return true }
                poll(nil, 0, min(Int32(left.rounded(.up)), Self.lookMilliseconds))
                continue
            }
            var request = pollfd(fd: handle, events: Int16(POLLIN), revents: 0)
            if poll(&request, 1, Int32(min(left.rounded(.up), 1e9))) > 0 { return true }
        }
    }

    /// Whether the process has ended. Its status stays unfetched, so its id stays reserved.
    private func hasEnded(_ process: pid_t) -> Bool {
        var found = siginfo_t()
        let options = WEXITED | WNOHANG | WNOWAIT
        // Without a child that has ended, the result is 0 and the signal's number stays 0.
        return waitid(P_PID, id_t(process), &found, options) == 0 && found.si_signo != 0
    }

    private func spawn(_ process: inout pid_t) -> Int32 {
        guard let program = words.first else { return ENOENT }
        let variables = environment.map { "\($0)=\($1)" }
        return ProgramStart.spawn(program, words, environment: variables, process: &process) {
            start in
            // Its output goes to the gateway's standard error.
            posix_spawn_file_actions_addopen(&start.actions, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen(&start.actions, 1, "/dev/null", O_WRONLY, 0)
            clinux_spawn_closes_from(&start.actions, 3)
            // The gateway ignores some signals, and the child would inherit that.
            var all = sigset_t()
            sigfillset(&all)
            posix_spawnattr_setsigdefault(&start.attributes, &all)
            posix_spawnattr_setpgroup(&start.attributes, 0)
            start.flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        }
    }
}
