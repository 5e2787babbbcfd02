import ConfigurationReading
import Glibc

/// The number of descriptors that the process may open.
enum DescriptorLimit {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Descriptors of the process besides event loops and listeners: the standard streams, those of
    /// Dispatch (counted: 6), the store with its journal (8), logs, and files while they are read.
    private static let own = 24
    /// For each event loop: one that wakes it and one that it watches with.
    private static let ofLoop = 2
    /// For one client with its origin, and for callers of the admin listener.
    private static let ofService = 8

    /// Raises the soft limit to the hard one.
    ///
    /// - Throws: when the hard limit is too low to serve. Dispatch silently ends a process that has
    ///   no descriptor left for it.
    static func raise(loops: Int, _ configuration: GatewayConfiguration) throws(GatewayError) {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
        if let shortage = shortage(of: current, loops, configuration) {
            throw shortage
        }
    }

    /// The error that ``raise(loops:_:)`` would throw; raises nothing.
    static func shortage(loops: Int, _ configuration: GatewayConfiguration) -> GatewayError? {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return nil }
        return shortage(of: UInt64(limit.rlim_max), loops, configuration)
    }

    private static func shortage(
        of all: UInt64,
        _ loops: Int,
        _ configuration: GatewayConfiguration
    ) -> GatewayError? {
        let (listeners, admins) = (configuration.listeners.count, configuration.admin.count)
        // Each admin listener has an event loop of its own.
        let needed = own + ofService + (loops + admins) * ofLoop + loops * listeners + admins
        guard all < UInt64(needed) else { return nil }
        return GatewayError(
            """
            only \(all) descriptors may be open; event_loops: \(loops), listeners: \(listeners) \
            need \(needed), and two more for each request under way
            """,
            hint: """
                Raise the limit (ulimit -n 1024, LimitNOFILE= in a unit), or lower `event_loops`.
                """
        )
    }

    /// The number of descriptors that clients may use together with all other uses. An eighth is
    /// reserved for connections to origins and for files. If clients could use all of them, the
    /// gateway could forward nothing for connected clients. (nginx too stops accepting when an
    /// eighth of its connections is left.)
    static var forClients: Int32 {
        let all = current
        return all == 0 ? .max : Int32(clamping: all - reserve)
    }

    static var reserve: UInt64 { current / 8 }

    /// The hard limit, to which the gateway raises its own; 0 when it can't be read.
    static var most: UInt64 {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_max) : 0
    }

    /// The soft limit; 0 when it can't be read.
    static var current: UInt64 {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_cur) : 0
    }
}

extension EventLoopCount {
    var onThisMachine: Int {
        switch self {
        case .perCore: max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 1)
        case .fixed(let count): count
        }
    }
}
