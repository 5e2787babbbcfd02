import Foundation
import LoopbackKit

/// A collector of spans that answers as it is told, and keeps what it gets.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; the listener is set once.
final class SpanCollector: @unchecked Sendable {
    enum Answer {
        case status(Int, fields: String = "")
        /// Takes the call, and answers nothing.
        case nothing
    }

    private let condition = NSCondition()
    private var answers: [Answer]
    private var contents: [Data] = []
    private var heads: [WireHead] = []
    private var listener: TestOrigin?

    /// - answers: of the first calls; later ones are taken.
    init(_ answers: [Answer] = []) throws {
        self.answers = answers
        listener = try TestOrigin { [self] connection in
            while let request = try connection.nextRequest() {
                let answer = condition.withLock {
                    contents.append(Data(request.body))
                    heads.append(request.head)
                    condition.broadcast()
                    return self.answers.isEmpty ? .status(200) : self.answers.removeFirst()
                }
                switch answer {
                case .status(let status, let fields):
                    try connection.answer(status, body: "{}", fields: fields, to: request)
                case .nothing: try connection.awaitEnd()
                }
            }
        }
    }

    var endpoint: String { "http://127.0.0.1:\(listener?.port ?? 0)" }

    func end() { listener?.stop() }

    /// The calls, once there are so many.
    func calls(_ count: Int) throws -> [(head: WireHead, content: Data)] {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.patience)
        return try condition.withLock {
            while contents.count < count {
                guard condition.wait(until: deadline) else {
                    throw ChildProcess.Failure(
                        description: "the collector got \(contents.count) calls, not \(count)"
                    )
                }
            }
            return Array(zip(heads, contents)).map { (head: $0.0, content: $0.1) }
        }
    }
}
