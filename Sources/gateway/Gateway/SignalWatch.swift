import Dispatch
import Glibc
import Synchronization

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

    /// Whether the process was asked to end before it watched its signals.
    private static let wasStopped = Atomic(false)

    /// Remembers signals that ask the process to end, for the watch that is made next. By default
    /// they would end it at once, with the requests that it has begun.
    static func noteStops() {
        // Made here: what is made on first use must not be made by a signal's handler.
        wasStopped.store(false, ordering: .relaxed)
        for case (let number, .stop) in requests {
            signal(number) { _ in SignalWatch.wasStopped.store(true, ordering: .relaxed) }
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
        unwatched.notify(queue: queue) {
            ready()
            if Self.wasStopped.exchange(false, ordering: .relaxed) { handle(.stop) }
        }
    }
}
