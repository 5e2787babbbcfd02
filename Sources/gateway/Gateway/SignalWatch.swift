import Dispatch
import Glibc
import Synchronization

/// Calls back when the process gets a signal.
///
/// Confined to the queue of its initialiser.
final class SignalWatch {
    /// The request of a signal.
    enum Request: Sendable {
        /// TERM, INT, QUIT: finish requests under way, then end. QUIT leaves no core file.
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

    /// Ignores the signals with requests to a running gateway. While it starts, there is nothing to
    /// reload or reopen, and by default these signals would end it. Signals to end work from the
    /// first moment.
    static func ignoreUntilWatched() {
        for (number, request) in requests {
            switch request {
            case .stop: break
            case .reload, .reopenLog, .upgrade: signal(number, SIG_IGN)
            }
        }
    }

    /// Whether the process was asked to end before it watched its signals.
    private static let wasStopped = Atomic(false)

    /// Notes signals to end, for the watch that is made next. By default they would end the process
    /// at once, with the requests that it has begun.
    static func noteStops() {
        // Created here: a signal handler must not create what is made on first use.
        wasStopped.store(false, ordering: .relaxed)
        for case (let number, .stop) in requests {
            signal(number) { _ in SignalWatch.wasStopped.store(true, ordering: .relaxed) }
        }
    }

    /// `ready` is called on the queue once no signal is missed any more, `handle` for each signal.
    init(
        on queue: DispatchQueue,
        ready: @escaping @Sendable () -> Void,
        handle: @escaping @Sendable (Request) -> Void
    ) {
        let unwatched = DispatchGroup()
        sources = Self.requests.map { number, request in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { handle(request) }
            // Dispatch watches from its own thread, some time after the activation.
            unwatched.enter()
            source.setRegistrationHandler { unwatched.leave() }
            source.activate()
            return source
        }
        unwatched.notify(queue: queue) {
            ready()
            if Self.wasStopped.exchange(false, ordering: .relaxed) { handle(.stop) }
        }
    }
}
