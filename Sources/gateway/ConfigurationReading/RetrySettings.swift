/// When a request is sent to an origin once more: `retries`.
package struct RetrySettings: Hashable, Sendable {
    /// `max`: for one request, beside the connects. Default 0: only a request that broke with an
    /// idle connection is sent once more.
    package var max = 0
    /// `budget`: the most retries under way, in percent of the origin's requests under way. Default
    /// 20 % (Envoy's).
    package var budget = 20
    /// `minimum`: retries under way that are allowed in any case. Default 3 (Envoy's).
    package var minimum = 3

    package init() {}

    init(_ node: SourceNode?, _ keyPath: String, log: ProblemLog) {
        let keys = ["max", "budget", "minimum"]
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return
        }
        if let value = reader.integer("max", in: 0...10) { max = value.value }
        if let value = reader.wholePercent("budget") { budget = value }
        if let value = reader.integer("minimum", in: 0...10_000) { minimum = value.value }
    }
}
