import CLinux
import Dispatch
import Glibc
import Synchronization

/// The thread that makes, writes, reads and closes unnamed files for an event loop.
///
/// A file call can't be polled. On a slow or blocked disk it would stop all clients of the event
/// loop. Its caller therefore waits here for a bounded time: ``patience`` for one call, and the
/// ``FileBudget`` for all slow calls together. A late call fails with ETIME. All other calls fail
/// at once until it has ended and the budget has recovered.
package final class FileThread: Sendable {
    /// The longest wait for one call: 2 s.
    package static let patience: UInt64 = 2_000_000_000

    private struct State {
        var budget = FileBudget()
        /// Calls that were given up and have not ended: at most one.
        var late = 0
    }

    /// The state of one call.
    private final class Call<Value: Sendable>: Sendable {
        enum State: Sendable {
            case running
            case ended(Result<Value, SocketError>)
            /// Its caller has given up.
            case late
        }

        let state = Mutex(State.running)
        let done = DispatchSemaphore(value: 0)
    }

    private let queue = DispatchQueue(label: "portcullis.files")
    private let state = Mutex(State())
    private let patience: UInt64

    /// - patience: nanoseconds; tests use another value.
    package init(patience: UInt64 = FileThread.patience) { self.patience = patience }

    /// Opens a file for reading and writing, for the owner only.
    ///
    /// - Throws: `SocketError` of open: no such folder, no room, a folder that can't be written.
    package func open(in folder: String) throws(SocketError) -> UnnamedFile {
        try perform("open(O_TMPFILE) in \(folder)") { call -> Result<UnnamedFile, SocketError> in
            let descriptor = clinux_open_unnamed(folder)
            return descriptor >= 0
                ? .success(UnnamedFile(descriptor: descriptor)) : .failure(SocketError(call))
        } undo: { file in
            _ = Glibc.close(file.descriptor)
        }
    }

    /// Writes all bytes at an offset.
    package func write(_ bytes: [UInt8], to file: UnnamedFile, at offset: Int) throws(SocketError) {
        try perform("pwrite") { call -> Result<Void, SocketError> in
            var written = 0
            while written < bytes.count {
                let done = bytes.withUnsafeBytes { bytes in
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                    return pwrite(
                        file.descriptor,
                        rest.baseAddress,
                        rest.count,
                        off_t(offset + written)
                    )
                }
                guard done > 0 || (done < 0 && errno == EINTR) else {
                    return .failure(SocketError(call))
                }
                written += max(done, 0)
            }
            return .success(())
        }
    }

    /// Reads from an offset as many bytes as there are, up to this number.
    package func read(
        _ count: Int,
        of file: UnnamedFile,
        at offset: Int
    ) throws(SocketError) -> [UInt8] {
        try perform("pread") { call -> Result<[UInt8], SocketError> in
            var failure: SocketError?
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { target, filled in
                // The target has `count` bytes, and pread writes at most this number.
                let done = pread(file.descriptor, target.baseAddress, count, off_t(offset))
                if done <= 0 { failure = SocketError(call) }
                filled = max(done, 0)
            }
            return failure.map { .failure($0) } ?? .success(bytes)
        }
    }

    /// Closes a file after the earlier calls have ended. Does not wait.
    package func close(_ file: UnnamedFile) {
        queue.async { [self] in
            let start = MonotonicClock.nanoseconds
            // Its bytes are freed here, which takes a while for a large file.
            _ = Glibc.close(file.descriptor)
            note(since: start)
        }
    }

    /// Makes the thread perform a call, and waits for it. Internal for tests.
    ///
    /// - call: its name, for the error.
    /// - undo: reverts the result of a call that came too late.
    func perform<Value: Sendable>(
        _ name: String,
        _ work: @escaping @Sendable (_ name: String) -> Result<Value, SocketError>,
        undo: @escaping @Sendable (Value) -> Void = { _ in }
    ) throws(SocketError) -> Value {
        let isTaken = state.withLock { state in
            state.late == 0 && state.budget.isLeft(at: MonotonicClock.nanoseconds)
        }
        guard isTaken else { throw SocketError(name, code: ETIME) }
        let call = Call<Value>()
        queue.async { [self] in
            let start = MonotonicClock.nanoseconds
            let result = work(name)
            note(since: start)
            let isLate = call.state.withLock { state in
                if case .late = state { return true }
                state = .ended(result)
                return false
            }
            call.done.signal()
            guard isLate else { return }
            if case .success(let value) = result { undo(value) }
            state.withLock { $0.late -= 1 }
        }
        _ = call.done.wait(timeout: .now() + .nanoseconds(Int(patience)))
        let found: Result<Value, SocketError>? = call.state.withLock { state in
            if case .ended(let result) = state { return result }
            state = .late
            // Counted before the call can end, which takes the lock that is held here.
            self.state.withLock { $0.late += 1 }
            return nil
        }
        guard let found else { throw SocketError(name, code: ETIME) }
        return try found.get()
    }

    private func note(since start: UInt64) {
        let now = MonotonicClock.nanoseconds
        state.withLock { $0.budget.spend(now &- start, at: now) }
    }
}

extension SocketError {
    /// Whether a file call was late, or not made because earlier ones were: see ``FileThread``. The
    /// same call may succeed later.
    package var isLate: Bool { code == ETIME }
}

/// An unnamed file: nothing of it outlives its descriptor. ``FileThread`` makes it.
package struct UnnamedFile: Sendable {
    fileprivate let descriptor: Int32
}

/// The time that an event loop may wait for slow file calls: 1 s at once, and a tenth of the time.
struct FileBudget: Sendable {
    /// Shorter calls are not counted: other clients wait for them no longer than for a verification
    /// or two.
    static let slow: UInt64 = 20_000_000
    /// The most time that may be spent at once.
    static let max: UInt64 = 1_000_000_000
    /// A tenth of the time is regained.
    private static let recovery: UInt64 = 10

    private var spent: UInt64 = 0
    private var since: UInt64 = 0

    /// Notes the nanoseconds that a call took.
    mutating func spend(_ duration: UInt64, at now: UInt64) {
        recover(now)
        guard duration >= Self.slow else { return }
        // A call that hangs for an hour costs no more than one that was given up, so the budget
        // recovers as soon.
        spent = Swift.min(spent + duration, 2 * Self.max)
    }

    /// Whether some budget is left.
    mutating func isLeft(at now: UInt64) -> Bool {
        recover(now)
        return spent < Self.max
    }

    private mutating func recover(_ now: UInt64) {
        spent -= Swift.min(spent, (now &- since) / Self.recovery)
        since = now
    }
}
