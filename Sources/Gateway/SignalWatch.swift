import Dispatch
import Glibc

/// Calls back when the process gets a signal.
///
/// Confined to the queue it was made with.
final class SignalWatch {
    private let sources: [any DispatchSourceSignal]

    /// `handle` is called on the queue with the signal's number.
    init(_ signals: [Int32], on queue: DispatchQueue, handle: @escaping @Sendable (Int32) -> Void) {
        sources = signals.map { number in
            // The default action would end the process before the source hears of it.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { handle(number) }
            source.activate()
            return source
        }
    }
}
