import Dispatch
import Encodings
import Synchronization

/// The old process's line to its successor, which decides now.
///
/// If a successor does not answer in time, it is not asked again before it has answered a query. So
/// it costs each event loop one wait, not one for each query. This process decides nothing
/// meanwhile.
final class SuccessorLine: Successor {
    /// The time that an event loop waits for an answer; usually it takes some microseconds.
    private static let answerTime = DispatchTimeInterval.seconds(2)

    private struct State {
        var lastNumber: UInt64 = 0
        /// The callers that wait for an answer.
        var waiting: [UInt64: @Sendable ([UInt8]?) -> Void] = [:]
        var isCut = false
        var isHung = false
        /// Called when it begins to hang, and when it answers again.
        var changed: @Sendable (_ isHung: Bool) -> Void = { _ in }
    }

    private let socket: HandoverSocket
    private let state = Mutex(State())
    /// The queue on which all answers are delivered. Each is put there under the lock, which keeps
    /// their order.
    private let answers = DispatchQueue(label: "portcullis.successor.answers")

    init(_ socket: HandoverSocket) { self.socket = socket }

    /// Begins to read answers, on its own queue.
    ///
    /// - changed: called when the successor begins to hang, and when it answers again.
    func start(_ changed: @escaping @Sendable (_ isHung: Bool) -> Void) {
        state.withLock { $0.changed = changed }
        DispatchQueue(label: "portcullis.successor").async { [self] in
            while case .message(let message, _) = socket.receive(within: nil) {
                guard case .answer(let number, let content) = message else { continue }
                state.withLock { answered(number, content, &$0) }
            }
            state.withLock { state in
                state.isCut = true
                giveUp(&state)
            }
        }
    }

    private func answered(_ number: UInt64, _ content: [UInt8], _ state: inout State) {
        if state.isHung {
            state.isHung = false
            answers.async { [changed = state.changed] in changed(false) }
        }
        // Late: the caller was answered without it.
        guard let asker = state.waiting.removeValue(forKey: number) else { return }
        answers.async { asker(content.isEmpty ? nil : content) }
    }

    /// Answers all waiting callers, in their order.
    private func giveUp(_ state: inout State) {
        let left = state.waiting.sorted { $0.key < $1.key }.map(\.value)
        state.waiting = [:]
        answers.async { for asker in left { asker(nil) } }
    }

    private func hang(_ state: inout State) {
        guard !state.isHung, !state.isCut else { return }
        state.isHung = true
        answers.async { [changed = state.changed] in changed(true) }
        giveUp(&state)
    }

    func ask(_ question: [UInt8], _ answered: @escaping @Sendable ([UInt8]?) -> Void) {
        // Sent under the lock, so that numbers are sent in their order.
        state.withLock { state in
            guard !state.isCut, !state.isHung else { return answers.async { answered(nil) } }
            state.lastNumber += 1
            state.waiting[state.lastNumber] = answered
            // If the successor has ended, the reader of answers notices it.
            if !socket.send(.question(state.lastNumber, question)) { hang(&state) }
        }
    }

    func ask(_ question: [UInt8]) -> [UInt8]? {
        let done = DispatchSemaphore(value: 0)
        let box = AnswerBox()
        ask(question) { content in
            box.content.withLock { $0 = content }
            done.signal()
        }
        if done.wait(timeout: .now() + Self.answerTime) == .timedOut {
            state.withLock { hang(&$0) }
            return nil
        }
        return box.content.withLock { $0 }
    }
}

/// Holds an answer for a waiting caller.
private final class AnswerBox: Sendable {
    let content = Mutex<[UInt8]?>(nil)
}
