import Dispatch
import LoopbackKit
import OutboundCalls
import Parties
import Synchronization
import TestSupport

/// All calls that were handed in for Apple, in compressed time.
final class CallLog: Sendable {
    struct Call: Sendable {
        /// Milliseconds since 1970.
        let at: Int64
        /// Which gateway made it.
        let run: Int
        let body: [UInt8]
        /// Whether that gateway was told the answer; one that has ended is not.
        var isAnswered = false
    }

    let calls = Mutex<[Call]>([])
    let runs = Mutex(0)
    let notices = Mutex<[String]>([])
}

/// A client whose calls take a moment of compressed time, and are noted.
final class WatchedApple: AppleCalling {
    /// A reply that comes in real time.
    private final class Slot: Sendable {
        private let reply = Mutex<CallReply?>(nil)
        private let isFilled = DispatchSemaphore(value: 0)

        func fill(_ reply: CallReply) {
            self.reply.withLock { $0 = reply }
            isFilled.signal()
        }

        func wait() throws {
            guard reply.withLock({ $0 }) == nil else { return }
            let patience = DispatchTimeInterval.milliseconds(Int(Wire.patienceMilliseconds))
            guard isFilled.wait(timeout: .now() + patience) == .success else {
                throw ChildProcess.Failure(description: "no reply from the client")
            }
        }

        func take() -> CallReply? { reply.withLock { $0 } }
    }

    private let apple: any AppleCalling
    private let time: CompressedTime
    private let log: CallLog
    private let random = Mutex(SeededGenerator(seed: 15))

    init(_ apple: any AppleCalling, _ time: CompressedTime, _ log: CallLog) {
        (self.apple, self.time, self.log) = (apple, time, log)
    }

    func send(_ call: AppleCall, _ done: @escaping @Sendable (CallReply) -> Void) {
        let run = log.runs.withLock { $0 }
        let number = log.calls.withLock { calls in
            calls.append(CallLog.Call(at: time.now, run: run, body: call.body))
            return calls.count - 1
        }
        let slot = Slot()
        apple.send(call) { slot.fill($0) }
        let pause = random.withLock { Int64.random(in: 50..<1_500, using: &$0) }
        time.after(pause, ready: slot.wait) { [log] in
            guard let reply = slot.take() else { return }
            log.calls.withLock { $0[number].isAnswered = true }
            done(reply)
        }
    }
}
