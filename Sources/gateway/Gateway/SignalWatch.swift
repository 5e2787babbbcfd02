import Dispatch
import Glibc

/// Calls back when the process gets a signal.
///
/// Confined to the queue it was made with.
final class SignalWatch {
    /// What a signal asks for.
    enum Request: Sendable {
        /// TERM, INT, QUIT: finish what is under way, then end. QUIT leaves no core file.
        case stop
        /// HUP: read the configuration again, and open the log again.
        case reload
        /// USR1: open the log again.
        case reopenLog
        /// USR2: hand over to the program that is at the path of this one.
        case upgrade
    }

    private static let requests: [(signal: Int32, request: Request)] = [
        (SIGTERM, .stop), (SIGINT, .stop), (SIGQUIT, .stop), (SIGHUP, .reload),
        (SIGUSR1, .reopenLog), (SIGUSR2, .upgrade),
    ]

    private let sources: [any DispatchSourceSignal]

    /// Ignores the signals that ask a running gateway for something: while it starts, there is
    /// nothing to read or open again yet, and by default they would end it. Those that ask it to
    /// end do so from the first moment.
    static func ignoreUntilWatched() {
        for (number, request) in requests {
            switch request {
            case .stop: break
            case .reload, .reopenLog, .upgrade: signal(number, SIG_IGN)
            }
        }
    }

    /// `ready` is called on the queue once no signal is missed any more, `handle` for each one that
    /// comes.
    init(
        on queue: DispatchQueue,
        ready: @escaping @Sendable () -> Void,
        handle: @escaping @Sendable (Request) -> Void
    ) {
        let unwatched = DispatchGroup()
        sources = Self.requests.map { number, request in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { handle(request) }
            // Dispatch watches from a thread of its own, some time after the activation.
            unwatched.enter()
            source.setRegistrationHandler { unwatched.leave() }
            source.activate()
            return source
        }
        unwatched.notify(queue: queue, execute: ready)
    }
}
