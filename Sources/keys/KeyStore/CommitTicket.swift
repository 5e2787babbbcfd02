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
package protocol CommitListener: AnyObject, Sendable {
    /// A batch in which somebody waits has ended.
    ///
    /// Called on the writer's queue, in the order of the tickets. Must return at once.
    func commitEnded(_ report: CommitReport)
}
