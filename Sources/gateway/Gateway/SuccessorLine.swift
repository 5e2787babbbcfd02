import ByteCoding
import Dispatch
import Synchronization

/// The old process's way to the one that decides now.
///
/// A successor that does not answer in time is not asked again before it has answered something:
/// it costs each event loop one wait, not one for each question. This process decides nothing
/// meanwhile.
final class SuccessorLine: Successor {
    /// How long an event loop waits for an answer; as a rule it takes some microseconds.
    private static let answerTime = DispatchTimeInterval.seconds(2)

    private struct State {
        var lastNumber: UInt64 = 0
        /// Who waits for an answer.
        var waiting: [UInt64: @Sendable ([UInt8]?) -> Void] = [:]
        var isCut = false
        var isHung = false
        /// Called when it begins to hang, and when it answers again.
        var changed: @Sendable (_ isHung: Bool) -> Void = { _ in }
    }

    private let socket: HandoverSocket
    private let state = Mutex(State())
    /// Where all answers are given. Each is put there under the lock, which keeps their order.
    private let answers = DispatchQueue(label: "portcullis.successor.answers")

    init(_ socket: HandoverSocket) { self.socket = socket }

    /// Begins to read answers, on a queue of its own.
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
        // Late: who asked was answered without it.
        guard let asker = state.waiting.removeValue(forKey: number) else { return }
        answers.async { asker(content.isEmpty ? nil : content) }
    }

    /// Has all who wait answered, in their order.
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
        // Sent under the lock, so that numbers go out in their order.
        state.withLock { state in
            guard !state.isCut, !state.isHung else { return answers.async { answered(nil) } }
            state.lastNumber += 1
            state.waiting[state.lastNumber] = answered
            // One that has ended is noticed where answers are read.
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

/// Where an answer is left for who waits.
private final class AnswerBox: Sendable {
    let content = Mutex<[UInt8]?>(nil)
}
