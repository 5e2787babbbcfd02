import Glibc

/// Standard input, output and error, as the program inherits them.
package enum StandardStreams {
    /// Makes them safe to use. Called first of all, before anything is opened or written.
    ///
    /// When one is missing, the next file or socket that is opened gets its number, and then the
    /// messages. So /dev/null takes its place. When a reader is gone, the write fails; no signal
    /// ends the process.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number: those below are open. Without /dev/null nothing is lost.
            _ = open("/dev/null", O_RDWR)
        }
    }
}
