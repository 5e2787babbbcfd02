import ByteCoding
import Dispatch
import Synchronization

/// The old process's way to the one that decides now.
final class SuccessorLine: Successor {
    /// How long a lane waits for an answer; as a rule it takes some microseconds.
    private static let answerTime = DispatchTimeInterval.seconds(2)

    private struct State {
        var lastNumber: UInt64 = 0
        /// Who waits for an answer.
        var waiting: [UInt64: @Sendable ([UInt8]?) -> Void] = [:]
        var isCut = false
    }

    private let socket: HandoverSocket
    private let state = Mutex(State())

    init(_ socket: HandoverSocket) { self.socket = socket }

    /// Begins to read answers, on a queue of its own.
    func start() {
        DispatchQueue(label: "portcullis.successor").async { [self] in
            while case .message(let message, _) = socket.receive(within: nil) {
                guard case .answer(let number, let content) = message else { continue }
                let asker = state.withLock { $0.waiting.removeValue(forKey: number) }
                asker?(content.isEmpty ? nil : content)
            }
            cut()
        }
    }

    /// The successor has gone: all who wait are told, in their order.
    private func cut() {
        let left = state.withLock { state in
            state.isCut = true
            defer { state.waiting = [:] }
            return state.waiting.sorted { $0.key < $1.key }.map(\.value)
        }
        for asker in left { asker(nil) }
    }

    func ask(_ question: [UInt8], _ answered: @escaping @Sendable ([UInt8]?) -> Void) {
        _ = post(question, answered)
    }

    /// - Returns: the question's number; `nil` when it is answered already.
    private func post(
        _ question: [UInt8],
        _ answered: @escaping @Sendable ([UInt8]?) -> Void
    ) -> UInt64? {
        // Sent under the lock, so that numbers go out in their order.
        let number = state.withLock { state -> UInt64? in
            guard !state.isCut else { return nil }
            state.lastNumber += 1
            guard socket.send(.question(state.lastNumber, question)) else { return nil }
            state.waiting[state.lastNumber] = answered
            return state.lastNumber
        }
        if number == nil { answered(nil) }
        return number
    }

    func ask(_ question: [UInt8]) -> [UInt8]? {
        let done = DispatchSemaphore(value: 0)
        let box = AnswerBox()
        let number = post(question) { content in
            box.content.withLock { $0 = content }
            done.signal()
        }
        guard done.wait(timeout: .now() + Self.answerTime) == .success else {
            if let number { state.withLock { $0.waiting[number] = nil } }
            return nil
        }
        return box.content.withLock { $0 }
    }
}

/// Where an answer is left for who waits.
private final class AnswerBox: Sendable {
    let content = Mutex<[UInt8]?>(nil)
}
