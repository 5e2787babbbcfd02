package import KeyStore
package import Logging
package import OutboundCalls

/// What a party gets at its start, beside its settings.
package struct PartyContext: Sendable {
    /// Makes the calls of all parties.
    let transport: any HTTPSSending
    /// Remembers the tokens that are good once, and has the keys.
    let decider: Decider
    /// Its level is the one in force, which a reload may change. No line has a token, a secret or a
    /// whole key id.
    let log: Logger
    /// Milliseconds since 1970.
    let wallClock: @Sendable () -> Int64
    let store: PartyStore

    package init(
        transport: any HTTPSSending,
        decider: Decider,
        log: Logger,
        wallClock: @escaping @Sendable () -> Int64,
        store: PartyStore
    ) {
        (self.transport, self.decider, self.log) = (transport, decider, log)
        (self.wallClock, self.store) = (wallClock, store)
    }

    /// Seconds since 1970.
    var wallSeconds: Int64 { wallClock() / 1_000 }
}

/// The store, as a party uses it that works beside requests.
package struct PartyStore: Sendable {
    /// The path of copies of what was fetched, each with an ending of its own; `nil` without a
    /// store.
    let copies: String?
    /// Opens the store as a command does, so that nothing else waits; `nil` without a store.
    let archive: @Sendable () throws(StoreProblem) -> (any KeyArchive)?

    package init(
        copies: String?,
        archive: @escaping @Sendable () throws(StoreProblem) -> (any KeyArchive)?
    ) {
        (self.copies, self.archive) = (copies, archive)
    }
}
