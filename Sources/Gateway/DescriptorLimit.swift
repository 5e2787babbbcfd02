import Glibc

/// How many descriptors the process may open.
enum DescriptorLimit {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Raises the soft limit to the hard one.
    static func raise() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }

    /// How many of them clients may take with all else; an eighth is kept for connections to
    /// origins and for files. With as many for clients as there are, nothing could be forwarded for
    /// those who are connected. (nginx too stops accepting when an eighth of its connections is
    /// left.)
    static var forClients: Int32 {
        let all = current
        return all == 0 ? .max : Int32(clamping: all - reserve)
    }

    /// Those that are kept.
    static var reserve: UInt64 { current / 8 }

    /// The soft limit; 0 when it can't be read.
    static var current: UInt64 {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_cur) : 0
    }
}
