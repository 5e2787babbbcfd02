import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request of a URLSession: what its delegate hears, and who waits for it.
final class TransportExchange: Sendable {
    private struct State {
        var response: HTTPURLResponse?
        var awaitingHead: CheckedContinuation<HTTPURLResponse, any Error>?
        var awaitingPiece: CheckedContinuation<Data?, any Error>?
        /// Pieces that came and were not read.
        var pieces: [Data] = []
        var bytes = 0
        var pace = TaskPace()
        /// How it ended; `nil` while it has not.
        var ending: Result<Void, any Error>?
    }

    /// What takes the content, and the most bytes that it takes.
    struct Sink: Sendable {
        let target: any AnswerSink
        let bytesMax: Int
    }

    private let task: any TransportTask
    /// The most bytes that wait to be read.
    private let bytesMax: Int
    /// Where the content of a good answer goes as it comes; `nil` where it waits to be read.
    private let sink: Sink?
    private let state = Guarded(State())

    /// Above this many unread bytes receiving pauses, and goes on at half of it.
    private static let pauseBytes = 1 << 20

    init(task: any TransportTask, bytesMax: Int, sink: Sink? = nil) {
        (self.task, self.bytesMax, self.sink) = (task, bytesMax, sink)
    }

    /// Whether the content of an answer goes into the sink. A redirect or a refusal is read.
    func isSunk(_ response: HTTPURLResponse) -> Bool {
        sink != nil && (200..<300).contains(response.statusCode)
    }

    // MARK: Who waits

    /// Starts the request and waits for the head of its answer.
    func response() async throws -> HTTPURLResponse {
        try await withCheckedThrowingContinuation { continuation in
            let ending = state.withLock { state in
                if state.ending == nil { state.awaitingHead = continuation }
                return state.ending
            }
            if case .failure(let error) = ending { continuation.resume(throwing: error) }
            task.resume()
        }
    }

    /// The next piece of the content; `nil` at its end.
    func piece() async throws -> Data? {
        enum Ready {
            case piece(Data)
            case end(Result<Void, any Error>)
        }
        return try await withCheckedThrowingContinuation { continuation in
            let (ready, pace): (Ready?, TaskPace.Pace?) = state.withLock { state in
                guard !state.pieces.isEmpty else {
                    if state.ending == nil { state.awaitingPiece = continuation }
                    return (state.ending.map(Ready.end), nil)
                }
                let piece = state.pieces.removeFirst()
                state.bytes -= piece.count
                let isShort = state.bytes <= Self.pauseBytes / 2
                return (.piece(piece), isShort ? state.pace.want(.running) : nil)
            }
            tell(pace)
            switch ready {
            case .piece(let piece): continuation.resume(returning: piece)
            case .end(let ending): continuation.resume(with: ending.map { nil })
            case nil: break
            }
        }
    }

    func cancel() {
        let isFirst = end(.failure(CancellationError()))
        #if canImport(FoundationNetworking)
            // The task's `cancel()` waits for the queue on which a download is written, and this
            // may be that queue.
            guard isFirst else { return }
        #endif
        task.cancel()
    }

    // MARK: What the delegate hears

    func received(_ response: HTTPURLResponse) {
        let waiting = state.withLock { state in
            state.response = response
            defer { state.awaitingHead = nil }
            return state.awaitingHead
        }
        waiting?.resume(returning: response)
    }

    func received(_ data: Data) {
        guard !data.isEmpty else { return }
        if let sink, let response = state.withLock({ $0.response }), isSunk(response) {
            return write(data, into: sink)
        }
        enum Step {
            case hand(CheckedContinuation<Data?, any Error>)
            case tell(TaskPace.Pace?)
            case fail, nothing
        }
        let step: Step = state.withLock { state in
            guard state.ending == nil else { return .nothing }
            if let waiting = state.awaitingPiece {
                state.awaitingPiece = nil
                return .hand(waiting)
            }
            state.pieces.append(data)
            state.bytes += data.count
            if state.bytes > bytesMax { return .fail }
            guard state.bytes > Self.pauseBytes, task.canPause else { return .nothing }
            return .tell(state.pace.want(.suspended))
        }
        switch step {
        case .hand(let waiting): waiting.resume(returning: data)
        case .tell(let pace): tell(pace)
        case .fail: fail(.answerTooLarge)
        case .nothing: break
        }
    }

    /// Returns once a piece is written: until then nothing more is received.
    private func write(_ data: Data, into sink: Sink) {
        let isFit: Bool? = state.withLock { state in
            guard state.ending == nil else { return nil }
            state.bytes += data.count
            return state.bytes <= sink.bytesMax
        }
        guard let isFit else { return }
        guard isFit else { return fail(.answerTooLarge) }
        do { try sink.target.append(data) } catch { fail(.contentUnreadable) }
    }

    private func fail(_ error: PortcullisError) {
        end(.failure(error))
        // Not here: on Linux it waits for the queue on which a sink is written.
        Task { [task] in task.cancel() }
    }

    /// Tells the task its pace, and what is wanted meanwhile.
    private func tell(_ pace: TaskPace.Pace?) {
        var pace = pace
        while let next = pace {
            switch next {
            case .running: task.resume()
            case .suspended: task.suspend()
            }
            pace = state.withLock { $0.pace.wasTold() }
        }
    }

    /// The task has ended.
    ///
    /// - Returns: why it has failed; `nil` also where its answer was complete before that.
    func taskEnded(_ error: (any Error)?) -> (any Error)? {
        guard !end(error.map(Result.failure) ?? .success(())),
            case .success = state.withLock({ $0.ending })
        else { return error }
        return nil
    }

    /// The first ending counts. Pieces that were received before stay readable.
    ///
    /// - Returns: whether it is this one.
    @discardableResult
    func end(_ ending: Result<Void, any Error>) -> Bool {
        let (isFirst, head, piece) = state.withLock { state in
            guard state.ending == nil else {
                return (
                    false, nil as CheckedContinuation<HTTPURLResponse, any Error>?,
                    nil as CheckedContinuation<Data?, any Error>?
                )
            }
            state.ending = ending
            defer { (state.awaitingHead, state.awaitingPiece) = (nil, nil) }
            return (true, state.awaitingHead, state.awaitingPiece)
        }
        switch ending {
        case .success: head?.resume(throwing: PortcullisError.answerUnfit)
        case .failure(let error): head?.resume(throwing: error)
        }
        piece?.resume(with: ending.map { nil })
        return isFirst
    }
}

/// Where the content of an answer goes as it comes.
protocol AnswerSink: Sendable {
    /// Takes a piece, and returns when it has it.
    func append(_ piece: Data) throws
}

/// What an exchange asks of its task.
protocol TransportTask: Sendable {
    /// Whether it can be suspended on its way, and go on where it was.
    var canPause: Bool { get }

    func resume()
    func suspend()
    func cancel()
}

extension URLSessionTask: TransportTask {
    /// Not on Linux. There, a task that is suspended leaves its connection, and sends its request
    /// again when it is resumed: the server serves it twice, and its content comes from the start
    /// once more (swift-corelibs-foundation, `_NativeProtocol.suspend()`).
    var canPause: Bool {
        #if canImport(FoundationNetworking)
            false
        #else
            true
        #endif
    }
}

/// Which of `suspend()` and `resume()` is called next.
///
/// Both are decided under a lock and called outside of it. Two threads may so decide in one order
/// and call in the other, and a task that is suspended last never goes on. Hence one caller
/// at a time calls the task, until its pace is the one that was wanted last.
struct TaskPace: Sendable {
    /// What the task does.
    enum Pace: Sendable { case running, suspended }

    /// What was wanted last.
    private(set) var wanted = Pace.running
    private var told = Pace.running
    private var isTelling = false

    /// Wants another pace.
    ///
    /// - Returns: what the caller tells the task before it calls ``wasTold()``; `nil` where there
    ///   is nothing to tell, or another caller tells it.
    mutating func want(_ pace: Pace) -> Pace? {
        wanted = pace
        return isTelling ? nil : next()
    }

    /// The task was told.
    ///
    /// - Returns: what is called next.
    mutating func wasTold() -> Pace? {
        isTelling = false
        return next()
    }

    private mutating func next() -> Pace? {
        guard told != wanted else { return nil }
        (told, isTelling) = (wanted, true)
        return wanted
    }
}
