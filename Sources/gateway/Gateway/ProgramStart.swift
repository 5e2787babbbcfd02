import Glibc

/// How a program is started as a process of its own.
///
/// Dispatch's threads take no signals, and a program would inherit that: it begins with none
/// blocked.
struct ProgramStart {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    /// Which other attributes count, of `POSIX_SPAWN_…`.
    var flags: Int32 = 0

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: the program's.
    ///   - arguments: the name first, by custom the path.
    ///   - environment: each as `NAME=VALUE`.
    ///   - process: set where it was started.
    ///   - prepare: adds what is done with descriptors, and other attributes.
    /// - Returns: 0, or why it was not started, as `errno`.
    static func spawn(
        _ path: String,
        _ arguments: [String],
        _ environment: [String],
        _ process: inout pid_t,
        _ prepare: (inout ProgramStart) -> Void
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
