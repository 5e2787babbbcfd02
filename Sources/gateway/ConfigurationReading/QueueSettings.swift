/// How requests wait while all servers of an origin have `max_connections`: `queue`.
package struct QueueSettings: Hashable, Sendable {
    /// `max`: the most that wait; 0 for none. Default 1000 (Envoy's `max_pending_requests` is 1024;
    /// HAProxy has no limit).
    package var max = 1_000
    /// `timeout`: how long one waits at most. Default 5s (HAProxy's is that of the connect).
    package var timeout: Duration = .seconds(5)

    package init() {}

    init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        let keys = ["max", "timeout"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("max", in: 0...10_000) { max = value.value }
        if let value = reader.duration("timeout", in: TimeoutSettings.range) {
            timeout = value.value
        }
    }
}
