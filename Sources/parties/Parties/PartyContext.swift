package import KeyStore
package import Logging
package import OutboundCalls

/// What a party gets at its start, beside its settings.
package struct PartyContext: Sendable {
    /// Makes the calls of all parties.
    let transport: any HTTPSSending
    /// Remembers the tokens that are good once.
    let decider: Decider
    /// Its level is the one in force, which a reload may change. No line has a token or a secret.
    let log: Logger
    /// Milliseconds since 1970.
    let wallClock: @Sendable () -> Int64
    /// The path of copies of what was fetched, each with an ending of its own; `nil` without a
    /// store.
    let copies: String?

    package init(
        transport: any HTTPSSending,
        decider: Decider,
        log: Logger,
        wallClock: @escaping @Sendable () -> Int64,
        copies: String?
    ) {
        (self.transport, self.decider, self.log) = (transport, decider, log)
        (self.wallClock, self.copies) = (wallClock, copies)
    }

    /// Seconds since 1970.
    var wallSeconds: Int64 { wallClock() / 1_000 }
}
