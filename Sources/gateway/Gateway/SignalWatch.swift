import Dispatch
import Glibc

/// Calls back when the process gets a signal.
///
/// Confined to the queue it was made with.
final class SignalWatch {
    private let sources: [any DispatchSourceSignal]

    /// `ready` is called on the queue once no signal is missed any more, `handle` with the number
    /// of each that comes.
    ///
    /// Until then HUP is ignored, since there is nothing to read again yet; others do what they do
    /// by default, so that a process that is told to end while it starts does end.
    init(
        _ signals: [Int32],
        on queue: DispatchQueue,
        ready: @escaping @Sendable () -> Void,
        handle: @escaping @Sendable (Int32) -> Void
    ) {
        signal(SIGHUP, SIG_IGN)
        let unwatched = DispatchGroup()
        sources = signals.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { handle(number) }
            // Dispatch watches from a thread of its own, some time after the activation.
            unwatched.enter()
            source.setRegistrationHandler { unwatched.leave() }
            source.activate()
            return source
        }
        unwatched.notify(queue: queue, execute: ready)
    }
}
