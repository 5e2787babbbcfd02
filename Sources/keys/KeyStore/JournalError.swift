/// Why a journal failed.
package struct JournalError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Hashable, Sendable {
        /// Another process holds the write lock for too long.
        case busy
        /// The disk is full.
        case full
        /// The data on disk can't be right.
        case damaged
        /// The file can't be written or read.
        case unusable
        /// Files were replaced, deleted or put back to an older state while they were in use.
        case replaced
        case closed
    }

    package let reason: Reason
    /// For people; left out of `==`.
    package let detail: String

    /// The next step, where the journal knows more than ``reason`` says; left out of `==`.
    package let next: String?

    /// Whether the fault may end by itself, as while a database starts; left out of `==`.
    package let isOutage: Bool

    /// Whether the fault may end without a change of the configuration: an outage, or a database
    /// that is slow, locked or full.
    package var isPassing: Bool { isOutage || reason == .busy || reason == .full }

    package init(_ reason: Reason, _ detail: String, next: String? = nil, isOutage: Bool = false) {
        self.reason = reason
        self.detail = detail
        self.next = next
        self.isOutage = isOutage
    }

    package static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    package func hash(into hasher: inout Hasher) { hasher.combine(reason) }

    package var description: String { "\(reason.rawValue): \(detail)" }
}
