import Dispatch
import EventLoops
import Foundation
import Glibc
import KeyStore
import Synchronization

/// The process of the next version, while this one may have to end it.
final class SuccessorProcess: Sendable {
    /// The variable that names the descriptor of the socket to this process.
    static let variable = "PORTCULLIS_HANDOVER"
    /// That descriptor, in the new process.
    private static let descriptor: Int32 = 3

    let identifier: pid_t
    let socket: HandoverSocket

    /// The file that was started; `nil` where there is none any more.
    let file: OwnProgram.File?

    /// Starts the program that is now at a path, with this one's arguments and environment.
    ///
    /// - environment: further variables.
    init(_ path: String, _ environment: [String: String]) throws(UpgradeRefusal) {
        guard let (own, other) = HandoverSocket.pair() else {
            throw UpgradeRefusal("no socket for it: \(WholeFile.lastError)")
        }
        file = OwnProgram.File(path)
        var variables = ProcessInfo.processInfo.environment
        variables.merge(environment) { $1 }
        variables[Self.variable] = String(Self.descriptor)
        var process: pid_t = 0
        // Closed here once the new process has its own: then this process notices its end.
        let status = withExtendedLifetime(other) {
            let environment = variables.map { "\($0)=\($1)" }
            return ProgramStart.spawn(
                path,
                CommandLine.arguments,
                environment: environment,
                process: &process
            ) { start in
                posix_spawn_file_actions_adddup2(
                    &start.actions,
                    other.descriptor,
                    Self.descriptor
                )
            }
        }
        guard status == 0 else {
            throw UpgradeRefusal("\(path) can't be started: \(String(cString: strerror(status)))")
        }
        identifier = process
        socket = own
    }

    /// Ends it, and returns when it has ended. It decides nothing afterwards.
    func kill() {
        _ = Glibc.kill(identifier, SIGKILL)
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    }
}

/// Why there is no upgrade; the old process continues as before.
struct UpgradeRefusal: Error {
    let text: String

    init(_ text: String) { self.text = text }
}

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
                state.withLock { answered(number, content, state: &$0) }
            }
            state.withLock { state in
                state.isCut = true
                giveUp(&state)
            }
        }
    }

    private func answered(_ number: UInt64, _ content: [UInt8], state: inout State) {
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
        _ = begin(question, answered)
    }

    /// - Returns: the number of the query; `nil` when it is not sent.
    private func begin(
        _ question: [UInt8],
        _ answered: @escaping @Sendable ([UInt8]?) -> Void
    ) -> UInt64? {
        // Sent under the lock, so that numbers are sent in their order.
        state.withLock { state -> UInt64? in
            guard !state.isCut, !state.isHung else {
                answers.async { answered(nil) }
                return nil
            }
            state.lastNumber += 1
            let number = state.lastNumber
            state.waiting[number] = answered
            // If the successor has ended, the reader of answers notices it.
            if !socket.send(.question(number, question)) { hang(&state) }
            return number
        }
    }

    func ask(_ question: [UInt8]) -> [UInt8]? {
        let done = DispatchSemaphore(value: 0)
        let box = AnswerBox()
        let number = begin(question) { content in
            box.content.withLock { $0 = content }
            done.signal()
        }
        if done.wait(timeout: .now() + Self.answerTime) == .timedOut {
            state.withLock { state in
                // An answer that has just come is none of a successor that hangs. After it, no
                // other one might come that ends the hang.
                if let number, state.waiting[number] != nil { hang(&state) }
            }
            return nil
        }
        return box.content.withLock { $0 }
    }
}

/// Holds an answer for a waiting caller.
private final class AnswerBox: Sendable {
    let content = Mutex<[UInt8]?>(nil)
}
