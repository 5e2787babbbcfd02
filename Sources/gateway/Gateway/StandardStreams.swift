import Glibc

/// Standard input, output and error, as whoever starts the program leaves them.
package enum StandardStreams {
    /// Makes them safe to use. Called first of all, before anything is opened or written.
    ///
    /// One that is missing would give its number to the next file or socket that is opened, which
    /// then gets the messages: /dev/null takes its place. A reader that is gone is an error of the
    /// write, and no signal that ends the process.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number: those below are open. Without /dev/null nothing is lost.
            _ = open("/dev/null", O_RDWR)
        }
    }
}
