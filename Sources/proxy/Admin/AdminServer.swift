import HTTPWire
package import Lanes

/// The operators' server: its connections, and the one gathering they share.
///
/// Lives on its lane's queue.
package final class AdminServer {
    package let lane: Lane
    let limits: AdminLimits
    private let source: any AdminSource
    private var gathering = Gathering<ObjectIdentifier>()
    private(set) var connections: [ObjectIdentifier: AdminConnection] = [:]

    /// Connections that are open.
    package var connectionCount: Int { connections.count }

    /// A server on a lane that serves no clients, so that operators see how those stand when they
    /// are stuck. The source is asked for every page but `/healthz`.
    package init(lane: Lane, source: any AdminSource, limits: AdminLimits = AdminLimits()) {
        self.lane = lane
        self.source = source
        self.limits = limits
    }

    /// Takes a connection that a listener of this lane accepted; closes it at once when there are
    /// too many, or when it can't be watched.
    package func accept(_ descriptor: Int32, _ peer: SocketAddress) {
        lane.preconditionOnQueue()
        guard connections.count < limits.connectionsMax else {
            return Connection.discard(descriptor)
        }
        Connection.setNoDelay(descriptor, peer)
        let connection = AdminConnection(descriptor, peer, server: self)
        do {
            try lane.register(connection)
        } catch {
            return Connection.discard(descriptor)
        }
        connections[ObjectIdentifier(connection)] = connection
        connection.begin()
    }

    /// Closes every connection, whatever it does.
    package func closeAll() {
        lane.preconditionOnQueue()
        for connection in Array(connections.values) { connection.close() }
    }

    /// Now as an IMF-fixdate.
    var date: [UInt8] { HTTPDate.octets(unixSeconds: lane.wallMilliseconds / 1000) }

    func connectionClosed(_ connection: AdminConnection) {
        withdraw(connection)
        connections[ObjectIdentifier(connection)] = nil
    }

    // MARK: Gathering

    /// Gives the connection a snapshot, in a later event.
    func ask(for connection: AdminConnection) {
        perform(gathering.asked(ObjectIdentifier(connection)))
    }

    /// The connection waits for no snapshot any more.
    func withdraw(_ connection: AdminConnection) {
        gathering.withdrawn(ObjectIdentifier(connection))
    }

    private func perform(_ action: Gathering<ObjectIdentifier>.Action) {
        switch action {
        case .none: break
        case .begin(let number):
            let server = LaneBound(self, on: lane)
            source.gather { [lane] snapshot in
                lane.perform { server.value.gathered(snapshot, number) }
            }
        }
    }

    private func gathered(_ snapshot: AdminSnapshot, _ number: UInt64) {
        let (served, action) = gathering.ended(number)
        for id in served { connections[id]?.gathered(snapshot) }
        perform(action)
    }
}
