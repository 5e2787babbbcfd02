package import KeyStore
package import OutboundCalls
package import Telemetry

/// The counts of calls to Apple.
package struct AppleTally: Sendable {
    /// The end of one call.
    package struct End: Hashable, Sendable {
        package let service: AppleService
        package let environment: KeyEnvironment
        /// The status of the answer, or the word of the fault.
        package let status: String
    }

    package private(set) var ends: [End: UInt64] = [:]
    /// The time from the hand-in to the reply, of calls that were begun; nanoseconds.
    package private(set) var durations: [AppleService.Family: Histogram] = [:]
    /// Tokens that were signed.
    package private(set) var tokens: UInt64 = 0

    package init() {}

    /// A call ended.
    package mutating func add(_ call: AppleCall, _ reply: CallReply, nanoseconds: UInt64) {
        let end = End(
            service: call.service,
            environment: call.environment,
            status: reply.statusText
        )
        ends[end, default: 0] &+= 1
        guard case .unsent = reply else {
            durations[call.service.family, default: Histogram()].add(nanoseconds)
            return
        }
    }

    /// A token was signed.
    package mutating func addToken() { tokens &+= 1 }

    /// The counts in a stable order.
    package var sortedEnds: [(end: End, count: UInt64)] {
        ends.map { (end: $0.key, count: $0.value) }
            .sorted { left, right in
                let names = { (end: End) in
                    [end.service.rawValue, end.environment.rawValue, end.status]
                }
                return names(left.end).lexicographicallyPrecedes(names(right.end))
            }
    }
}
