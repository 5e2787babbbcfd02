internal import Dispatch
internal import Glibc
internal import KeyStore
internal import Synchronization

/// Hears of changes by commands: through a socket, and by a look at the store once a second.
///
/// `@unchecked Sendable`: `timer` and `calls` are set once, by the thread that makes the store, and
/// Dispatch's sources may be cancelled on any; everything else is constant or atomic.
final class ChangeWatch: @unchecked Sendable {
    /// How often the store is looked at unasked. It bounds how long it goes unnoticed that the
    /// store was replaced, can't be read, or can be read again.
    private static let interval = DispatchTimeInterval.seconds(1)
    /// Seconds for which a command may keep the gateway waiting for its message.
    private static let messageSeconds = 1
    /// Commands that wait to be heard.
    private static let backlog: Int32 = 64
    /// How long the socket is left alone when there is no descriptor for a caller, which would
    /// wake the queue again and again.
    private static let shortageMilliseconds: Int32 = 100

    private let path: String
    private let identity: FileIdentity?
    /// On which commands call; the next process of a gateway can be given it.
    let descriptor: Int32
    private let queue = DispatchQueue(label: "portcullis.store.changes")
    private let hasEnded = Atomic(false)
    /// Writes what waits; told by the table behind ``start(_:)``.
    private let writer = Mutex<(@Sendable () -> JournalError?)?>(nil)
    private var timer: (any DispatchSourceTimer)?
    private var calls: (any DispatchSourceRead)?

    /// Listens on the socket of a database whose lock this process holds. Callers wait until
    /// ``start(_:)``.
    ///
    /// - Throws: `locked` when a gateway answers there all the same: its lock was deleted.
    init(database: String) throws(StoreProblem) {
        path = database + ChangeAddress.suffix
        let other = ChangeAddress.socket(ofDatabase: database) {
            ChangeAddress.bound($0, seconds: Self.messageSeconds)
            return connect($0, $1, $2)
        }
        if let other {
            Glibc.close(other)
            let detail = "is used by another gateway, whose lock somebody has deleted"
            throw StoreProblem(.locked, database, detail)
        }
        // What a gateway has left that was killed.
        unlink(path)
        let flags = Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = ChangeAddress.socket(ofDatabase: database, flags: flags) {
            // The mode of the socket is that of its file (unix(7)).
            fchmod($0, 0o600) == 0 && bind($0, $1, $2) == 0 ? listen($0, Self.backlog) : -1
        }
        guard let descriptor else {
            throw StoreFile.lastProblem(path, "can't be made")
        }
        StoreFile.giveToOwner(ofFolderOf: path)
        self.descriptor = descriptor
        identity = FileIdentity(path: path)
    }

    /// Goes on listening where another process has, which has given its descriptor.
    init(lent descriptor: Int32, database: String) {
        path = database + ChangeAddress.suffix
        self.descriptor = descriptor
        identity = FileIdentity(path: path)
    }

    deinit { end() }

    // MARK: For the next process

    /// Lets callers wait, and returns when nothing is called any more.
    func pause() {
        timer?.suspend()
        calls?.suspend()
        queue.sync {}
    }

    /// Serves again, those that have waited first.
    func goOn() {
        calls?.resume()
        timer?.resume()
    }

    /// Leaves the socket to the process that has it too. Behind ``pause()``.
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

    /// Calls `body` when a command asks that what waits is written.
    func writeOnDemand(_ body: @escaping @Sendable () -> JournalError?) {
        writer.withLock { $0 = body }
    }

    /// Looks at the store soon.
    func look(_ body: @escaping @Sendable () -> JournalError?) {
        queue.async { [weak self] in self?.lookNow(body) }
    }

    private func lookNow(_ body: @Sendable () -> JournalError?) {
        if !isEnded { _ = body() }
    }

    /// Ends it, and returns when nothing is called any more. Not to be called on the queue.
    func endAndWait() {
        end()
        queue.sync {}
    }

    /// Ignores calls from now on, and begins none of its own. Idempotent.
    private func end() {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // Only what is ours is removed.
        if let identity, FileIdentity(path: path) == identity { unlink(path) }
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
            // Who does not wait for the answer does not need it.
            _ = ChangeAddress.send(answer.text, to: caller)
        }
    }
}
