import CLinux

// What a lane watches.
extension Lane {
    /// Watches an endpoint's descriptor, edge-triggered for both directions unless told otherwise.
    /// On the lane's queue only.
    package func register(
        _ endpoint: Endpoint,
        events: UInt32 = Lane.bothEdges
    ) throws(SocketError) {
        preconditionOnQueue()
        let token = table.reserve()
        guard clinux_epoll_add(set, endpoint.descriptor, events, token) == 0 else {
            let error = SocketError("epoll_ctl")
            table.release(EndpointTable.slot(token))
            throw error
        }
        table.put(endpoint, under: token)
        endpoint.token = token
    }

    /// Puts an endpoint in another's place; both have the same descriptor.
    func replace(_ endpoint: Endpoint, by successor: Endpoint) {
        guard let token = endpoint.token else { return }
        table.put(successor, under: token)
        endpoint.token = nil
        successor.token = token
    }

    /// How an endpoint goes.
    enum Parting {
        /// Its descriptor stays open, and is not watched any more.
        case byLeaving
        /// Its descriptor is closed next, which ends the watch too where it has no twin (epoll(7)).
        case byClosing
    }

    func forget(_ endpoint: Endpoint, _ parting: Parting = .byLeaving) {
        guard let token = endpoint.token else { return }
        switch parting {
        case .byClosing where !endpoint.mayHaveTwins: break
        case .byClosing, .byLeaving: _ = clinux_epoll_remove(set, endpoint.descriptor)
        }
        table.remove(token)
        let slot = EndpointTable.slot(token)
        if !waiting.holds(slot) { table.release(slot) }
        endpoint.token = nil
    }

    /// Leaves an endpoint registered, its descriptor unwatched.
    func unwatch(_ descriptor: Int32) { _ = clinux_epoll_remove(set, descriptor) }

    func watchAgain(_ descriptor: Int32, events: UInt32, token: UInt64) {
        _ = clinux_epoll_add(set, descriptor, events, token)
    }
}
