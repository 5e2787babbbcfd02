import ConfigurationReading
import EventLoops
import Logging

/// The listening sockets of a gateway.
struct Listening {
    let clients: [ListenerSet]
    /// The operators' sockets, in the order of the configuration, each with its event loop.
    let operators: [(socket: ListenerSet, loop: EventLoop)]

    /// Binds all addresses, and takes over the sockets that the process was started with.
    ///
    /// - certificates: those of the listeners for clients, in their order.
    init(
        _ configuration: GatewayConfiguration,
        certificates: [TLSContext?],
        inherited: InheritedSockets,
        wallClock: @escaping @Sendable () -> Int64,
        log: Logger
    ) throws(GatewayError) {
        var inherited = inherited
        let loops = configuration.loops.onThisMachine
        clients = try ListenerSet.clients(
            configuration,
            certificates,
            loops: loops,
            inherited: &inherited
        )
        var operators: [(socket: ListenerSet, loop: EventLoop)] = []
        for socket in try ListenerSet.operators(configuration, &inherited) {
            let number = loops + operators.count
            operators.append((socket, try EventLoop.numbered(number, wallClock)))
        }
        self.operators = operators
        for what in inherited.discardRest() {
            log.warning(
                """
                a socket that the process was started with is not used: \(what); next: give both \
                the same address, or take it out of the socket unit
                """
            )
        }
    }

    var all: [ListenerSet] { clients + operators.map(\.socket) }
}

extension EventLoop {
    static func numbered(
        _ number: Int,
        _ clock: @escaping @Sendable () -> Int64
    ) throws(GatewayError) -> EventLoop {
        do throws(SocketError) {
            return try EventLoop(number: number, wallClock: clock)
        } catch {
            throw GatewayError(
                "event loop \(number): \(error)",
                hint: "Raise the limit of descriptors."
            )
        }
    }
}
