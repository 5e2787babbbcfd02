internal import Dispatch
internal import KeyStore
internal import Synchronization

/// Waits for changes by others: for a notification, and at most for a second. A notification is
/// only a hint that may get lost, and some databases have none.
final class ChangeFollower: Sendable {
    /// The channel of changes of keys.
    static let channel = "portcullis_keys"
    /// The channel of what operators order the fleet.
    static let orders = "portcullis_orders"

    private struct Ear {
        var connection: DatabaseConnection
        var source: any DispatchSourceRead
    }

    private let settings: PostgreSQLSettings
    private let queue = DispatchQueue(label: "portcullis.store.changes")
    /// Connecting takes time, and changes are read meanwhile.
    private let connecting = DispatchQueue(label: "portcullis.store.listening")
    private let isConnecting = Atomic(false)
    private let body = Mutex<(@Sendable () -> JournalError?)?>(nil)
    private let ordered = Mutex<(@Sendable () -> Void)?>(nil)
    private let ear = Mutex<Ear?>(nil)
    private let isEnded = Atomic(false)
    let tally = LinkTally()

    init(_ settings: PostgreSQLSettings) { self.settings = settings }

    /// Calls `body` on the follower's queue, from now on.
    func start(_ body: @escaping @Sendable () -> JournalError?) {
        self.body.withLock { $0 = body }
        queue.async { [weak self] in self?.turn() }
    }

    /// Calls `body` on the follower's queue when an order was announced. It is a hint that may get
    /// lost.
    func hear(_ body: @escaping @Sendable () -> Void) { ordered.withLock { $0 = body } }

    func end() {
        isEnded.store(true, ordering: .releasing)
        stopListening()
        tally.closed()
    }

    private func call() {
        guard !isEnded.load(ordering: .acquiring) else { return }
        _ = body.withLock { $0 }?()
    }

    private func turn() {
        guard !isEnded.load(ordering: .acquiring) else { return }
        if ear.withLock({ $0 == nil }), !isConnecting.exchange(true, ordering: .acquiring) {
            connecting.async { [weak self] in
                self?.listen()
                self?.isConnecting.store(false, ordering: .releasing)
            }
        }
        call()
        queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.turn() }
    }

    /// Asks for notifications. A failure is retried in a second; until then the polling suffices.
    private func listen() {
        let deadline = ContinuousClock.now + settings.connectTimeout
        do throws(DatabaseFault) {
            let connection = try DatabaseConnection.open(settings.address, until: deadline)
            let listen = [Self.channel, Self.orders].map { DatabaseStatement("LISTEN \($0)") }
            _ = try connection.run(listen, until: deadline)
            ear.withLock { ear in
                let source = DispatchSource.makeReadSource(
                    fileDescriptor: connection.descriptor,
                    queue: queue
                )
                source.setEventHandler { [weak self] in self?.hear() }
                source.activate()
                ear = Ear(connection: connection, source: source)
            }
            tally.connected()
            // Earlier changes are not reported.
            queue.async { [weak self] in
                self?.call()
                self?.callOrdered()
            }
            if isEnded.load(ordering: .acquiring) { end() }
        } catch {
            tally.failed()
        }
    }

    private func hear() {
        let channels: Set<String>? = ear.withLock { ear in
            do throws(DatabaseFault) {
                return try ear?.connection.takeNotifications() ?? []
            } catch {
                return nil
            }
        }
        guard let channels else {
            tally.disconnected()
            stopListening()
            return call()
        }
        if channels.contains(Self.channel) { call() }
        if channels.contains(Self.orders) { callOrdered() }
    }

    private func callOrdered() {
        guard !isEnded.load(ordering: .acquiring) else { return }
        ordered.withLock { $0 }?()
    }

    private func stopListening() {
        ear.withLock { ear in
            guard let old = ear else { return }
            // The socket is closed once the source has released it.
            old.source.setCancelHandler { [connection = old.connection] in _ = connection }
            old.source.cancel()
            ear = nil
        }
    }
}
