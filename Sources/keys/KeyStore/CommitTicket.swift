/// The place of a change in the order in which changes are written. Tickets of one lane rise.
package struct CommitTicket: Comparable, Hashable, Sendable {
    let number: UInt64

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// Whether somebody waits for a change.
package enum Durability: Hashable, Sendable {
    /// Written with the next ``Committer/kick()``; listeners are told.
    case awaited
    /// Written soon; listeners may not be told.
    case behind
}

/// Is told how commits went; one for each lane.
///
/// Called on the writer's queue, for batches in which a change is awaited, in the order of the
/// tickets. Must return at once.
package protocol CommitListener: AnyObject, Sendable {
    /// All tickets up to this one are on disk, but for those that were reported as failed.
    func committed(through ticket: CommitTicket)
    /// These tickets are not known to be on disk. They will be written later.
    func commitFailed(_ tickets: ClosedRange<CommitTicket>)
}
