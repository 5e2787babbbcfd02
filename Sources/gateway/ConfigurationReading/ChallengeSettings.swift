/// How challenges are issued.
package struct ChallengeSettings: Hashable, Sendable {
    /// `enrolment_ttl`: default 1h, 10s…30d. Long, since Apple's servers may be slow or throttle.
    package var enrolmentLifetime: Duration = .seconds(3600)
    /// `assertion_ttl`: default 5m, 1s…1d.
    package var assertionLifetime: Duration = .seconds(300)
    /// `capacity`: how many spent challenges of one purpose are remembered at the least; each takes
    /// 170 bytes at the most, and a few bits where most of what is issued is spent. Default
    /// 1048576, 1024…16777216.
    package var capacity = 1 << 20

    /// Seconds that the challenge lives which lives longest.
    package var lifetimeMax: Int64 {
        max(enrolmentLifetime, assertionLifetime).components.seconds
    }

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["enrolment_ttl", "assertion_ttl", "capacity"]
        guard let node, let reader = MappingReader(node, "challenges", keys: keys, log: log) else {
            return
        }
        let month = Duration.seconds(30 * 86_400)
        if let ttl = reader.duration("enrolment_ttl", in: .seconds(10)...month) {
            enrolmentLifetime = ttl.value
        }
        if let ttl = reader.duration("assertion_ttl", in: .seconds(1)...Duration.seconds(86_400)) {
            assertionLifetime = ttl.value
        }
        if let number = reader.integer("capacity", in: 1024...1 << 24) { capacity = number.value }
    }
}
