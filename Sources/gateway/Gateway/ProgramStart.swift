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
