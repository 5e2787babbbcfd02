internal import Dispatch
internal import Glibc
internal import KeyStore
internal import Synchronization

/// Detects changes by commands: through a socket, and by checking the store once a second.
///
/// `@unchecked Sendable`: `timer` and `calls` are set once, by the thread that makes the store, and
/// Dispatch's sources may be cancelled on any; everything else is constant or atomic.
final class ChangeWatch: @unchecked Sendable {
    /// The interval of checks without a call. It limits how long the gateway does not notice that
    /// the store was replaced, can't be read, or can be read again.
    private static let interval = DispatchTimeInterval.seconds(1)
    /// Seconds for which a command may keep the gateway waiting for its message.
    private static let messageSeconds = 1
    /// The most commands that wait for the gateway.
    private static let backlog: Int32 = 64
    /// The pause of the socket when there is no descriptor for a caller. Without it the caller
    /// would wake the queue again and again.
    private static let shortageMilliseconds: Int32 = 100

    private let path: String
    private let identity: FileIdentity?
    /// Whether another process has made the socket.
    private let isLent: Bool
    /// The socket on which commands call; the successor can get it.
    let descriptor: Int32
    private let queue = DispatchQueue(label: "portcullis.store.changes")
    private let hasEnded = Atomic(false)
    /// Writes all waiting changes; set by the table after ``start(_:)``.
    private let writer = Mutex<(@Sendable () -> JournalError?)?>(nil)
    private var timer: (any DispatchSourceTimer)?
    private var calls: (any DispatchSourceRead)?

    /// Listens on the socket of a database whose lock this process holds. Callers wait until
    /// ``start(_:)``.
    ///
    /// - Throws: `locked` when a gateway answers there although this process has the lock: its lock
    ///   file was deleted.
    init(database: String) throws(StoreProblem) {
        path = database + ChangeAddress.suffix
        let other = ChangeAddress.socket(ofDatabase: database) {
            ChangeAddress.bound($0, seconds: Self.messageSeconds)
            return connect($0, $1, $2)
        }
        if let other {
            Glibc.close(other)
            let detail = "is used by another gateway, whose lock somebody has deleted"
            throw StoreProblem(.locked, at: database, detail)
        }
        // Removes the socket of a gateway that was killed.
        unlink(path)
        let flags = Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = ChangeAddress.socket(ofDatabase: database, flags: flags) {
            // The mode of the socket is that of its file (unix(7)).
            fchmod($0, 0o600) == 0 && bind($0, $1, $2) == 0 ? listen($0, Self.backlog) : -1
        }
        guard let descriptor else { throw StoreFile.lastProblem(path, "can't be made") }
        StoreFile.giveToOwner(ofFolderOf: path)
        self.descriptor = descriptor
        identity = FileIdentity(path: path)
        isLent = false
    }

    /// Continues to listen on the socket of another process, which has given its descriptor.
    init(lent descriptor: Int32, database: String) {
        path = database + ChangeAddress.suffix
        self.descriptor = descriptor
        identity = FileIdentity(path: path)
        isLent = true
    }

    /// A process that can't take over ends so. The other one needs the file of its socket then.
    deinit { end(removesFile: !isLent) }

    // MARK: For the next process

    /// Lets callers wait, and returns when no call runs any more.
    func pause() {
        timer?.suspend()
        calls?.suspend()
        queue.sync {}
    }

    /// Serves again, the waiting callers first.
    func goOn() {
        calls?.resume()
        timer?.resume()
    }

    /// Leaves the socket to the process that also has it. Called after ``pause()``.
    func leave() {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        close()
        goOn()
    }

    /// Whether calls are ignored from now on.
    var isEnded: Bool { hasEnded.load(ordering: .acquiring) }

    /// Calls `body` for each call of a command and once a second, from now on.
    func start(_ body: @escaping @Sendable () -> JournalError?) {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: Self.interval, leeway: .milliseconds(100))
        timer.setEventHandler { [weak self] in self?.lookNow(body) }
        let calls = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        calls.setEventHandler { [weak self] in self?.answer(body) }
        self.timer = timer
        self.calls = calls
        timer.activate()
        calls.activate()
    }

    /// Calls `body` when a command asks to write all waiting changes.
    func writeOnDemand(_ body: @escaping @Sendable () -> JournalError?) {
        writer.withLock { $0 = body }
    }

    /// Checks the store soon.
    func look(_ body: @escaping @Sendable () -> JournalError?) {
        queue.async { [weak self] in self?.lookNow(body) }
    }

    private func lookNow(_ body: @Sendable () -> JournalError?) {
        if !isEnded { _ = body() }
    }

    /// Ends it, and returns when no call runs any more. Not to be called on the queue.
    func endAndWait() {
        end()
        queue.sync {}
    }

    /// Ignores calls from now on, and makes no checks of its own. Idempotent.
    private func end(removesFile: Bool = true) {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // Removes only its own socket.
        if removesFile, let identity, FileIdentity(path: path) == identity { unlink(path) }
        close()
    }

    private func close() {
        timer?.cancel()
        guard let calls else {
            Glibc.close(descriptor)
            return
        }
        let descriptor = descriptor
        calls.setCancelHandler { Glibc.close(descriptor) }
        calls.cancel()
    }

    private func answer(_ body: @Sendable () -> JournalError?) {
        while !isEnded {
            let caller = accept(descriptor, nil, nil)
            guard caller >= 0 else {
                guard ![EAGAIN, EINTR, ECONNABORTED].contains(errno) else { return }
                poll(nil, 0, Self.shortageMilliseconds)
                return
            }
            defer { Glibc.close(caller) }
            ChangeAddress.bound(caller, seconds: Self.messageSeconds)
            let error: JournalError?
            switch ChangeAddress.receive(from: caller) {
            case ChangeAddress.call: error = body()
            case ChangeAddress.writeCall: error = writer.withLock { $0 }?()
            default: continue
            }
            let answer: ChangeAddress.Answer =
                switch error {
                case nil: .seen
                case let error? where error.reason == .replaced: .replaced(error.detail)
                case let error?: .unreadable(error.description)
                }
            // A caller that does not wait for the answer does not need it.
            _ = ChangeAddress.send(answer.text, to: caller)
        }
    }
}
