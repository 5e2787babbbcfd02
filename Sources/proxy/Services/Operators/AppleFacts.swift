package import Telemetry

/// How the calls to Apple's services stand.
package struct AppleFacts: Sendable {
    /// How often calls ended in one way.
    package struct End: Sendable {
        package var service: String
        package var environment: String
        /// The status of the answer, or why there is none.
        package var status: String
        package var count: UInt64

        package init(service: String, environment: String, status: String, count: UInt64) {
            self.service = service
            self.environment = environment
            self.status = status
            self.count = count
        }
    }

    /// A host that was called.
    package struct Host: Sendable {
        package var service: String
        package var environment: String
        /// Calls that wait.
        package var waiting: Int
        package var underWay: Int
        /// One of ``AppleFacts/breakers``.
        package var breaker: String

        package init(
            service: String,
            environment: String,
            waiting: Int,
            underWay: Int,
            breaker: String
        ) {
            self.service = service
            self.environment = environment
            self.waiting = waiting
            self.underWay = underWay
            self.breaker = breaker
        }
    }

    package var ends: [End] = []
    package var hosts: [Host] = []
    /// The words for a breaker.
    package var breakers: [String] = []
    /// From the hand-in to the reply, by service; nanoseconds.
    package var durations: [(service: String, Histogram)] = []
    /// Tokens that were signed.
    package var tokens: UInt64 = 0

    package init() {}

    package init(
        ends: [End],
        hosts: [Host],
        breakers: [String],
        durations: [(service: String, Histogram)],
        tokens: UInt64
    ) {
        self.ends = ends
        self.hosts = hosts
        self.breakers = breakers
        self.durations = durations
        self.tokens = tokens
    }
}
