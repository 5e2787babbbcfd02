// The steps of a hand-over that concern the store.
extension KeyTable {
    /// From now on the successor may read the store ahead, until ``endTrail()`` or a hand-over.
    package func beginTrail() { journal.beginTrail() }

    /// No other process reads ahead any more.
    package func endTrail() { journal.endTrail() }

    /// Stops writing, for the state of a hand-over, which ``Decider/handOver(to:)`` or ``goOn()``
    /// ends. Blocks until all waiting changes are durable. The table is not used meanwhile.
    ///
    /// - Returns: the successor's lease of the store; `nil` where there is none.
    /// - Throws: when a change can't be written, or the changes of others can't be read.
    package func stopWriting() throws(JournalError) -> StoreLease? {
        if let readFault { throw readFault }
        try committer.flush()
        return journal.lend()
    }

    /// Continues to write: the hand-over has failed.
    package func goOn() throws(JournalError) {
        try journal.takeBack()
        // The other process may have confirmed changes of commands. If they can't be read, the
        // table admits nothing. A journal that decides knows them with each use.
        if journal.decides == .inMemory { _ = refresh() }
    }

    /// Gives up the store, which the successor has now.
    package func leaveStore() { journal.leave() }
}
