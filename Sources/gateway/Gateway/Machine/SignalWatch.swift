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

    /// The signals that came before they were watched, a bit for each.
    private static let noted = Atomic<UInt64>(0)

    /// Notes the signals with requests to a running gateway, for the watch that is made next: what
    /// is to be read again may have been read before. By default they would end the process.
    /// Signals to end work from the first moment.
    static func noteRequests() {
        for (number, request) in requests {
            switch request {
            case .stop: break
            case .reload, .reopenLog, .upgrade: note(number)
            }
        }
    }

    /// Notes signals to end, for the watch that is made next. By default they would end the process
    /// at once, with the requests that it has begun.
    static func noteStops() {
        for case (let number, .stop) in requests { note(number) }
    }

    private static func note(_ number: Int32) {
        // Created here: a signal handler must not create what is made on first use.
        _ = noted.load(ordering: .relaxed)
        signal(number) { number in
            _ = SignalWatch.noted.bitwiseOr(SignalWatch.bit(of: number), ordering: .relaxed)
        }
    }

    private static func bit(of number: Int32) -> UInt64 { 1 &<< UInt64(number) }

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
            let noted = Self.noted.exchange(0, ordering: .relaxed)
            for (number, request) in Self.requests where noted & Self.bit(of: number) != 0 {
                handle(request)
            }
        }
    }
}
