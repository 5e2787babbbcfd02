package import Telemetry

/// The counts of calls to a party.
package struct CallTally<Call: OutboundCall>: Sendable {
    /// The end of calls of one kind.
    package struct End: Comparable, Hashable, Sendable {
        package let kind: Call.Kind
        /// The status of the answer, or the word of the failure.
        package let status: String

        package static func < (left: End, right: End) -> Bool {
            (left.kind, left.status) < (right.kind, right.status)
        }
    }

    package private(set) var ends: [End: UInt64] = [:]
    /// The time from the hand-in to the reply, of calls that were begun; nanoseconds.
    package private(set) var durations: [Call.Family: Histogram] = [:]

    package init() {}

    package mutating func add(_ call: Call, _ reply: CallReply, nanoseconds: UInt64) {
        ends[End(kind: call.kind, status: reply.statusText), default: 0] &+= 1
        if case .unsent = reply { return }
        durations[call.family, default: Histogram()].add(nanoseconds)
    }

    /// The counts in a stable order.
    package var sortedEnds: [(end: End, count: UInt64)] {
        ends.sorted { $0.key < $1.key }.map { (end: $0.key, count: $0.value) }
    }
}
