package import Rules
package import Services

/// A party that works by itself, whatever requests ask of it.
///
/// ``PartyList`` has a line for each, and the gateway has all of them start, reload and end. A
/// member that a party does not have does nothing.
package protocol Party: Sendable {
    /// Begins, before a client is accepted. It may wait for the disk.
    func start()

    /// A reload serves these settings.
    func loaded(_ settings: PartySettings)

    /// Begins no call by itself any more: the gateway ends, or its successor makes them.
    func end()

    /// Replies to all who wait that no call is made any more. `ended` is called once.
    func stop(_ ended: @escaping @Sendable () -> Void)

    /// What operators read.
    var facts: [any PartyFacts] { get }
}

extension Party {
    package func start() {}

    package func loaded(_ settings: PartySettings) {}

    package func end() {}

    package func stop(_ ended: @escaping @Sendable () -> Void) { ended() }

    package var facts: [any PartyFacts] { [] }
}

/// What a configuration says that parties read.
package struct PartySettings: Sendable {
    let apple: AppleSettings
    let google: GoogleSettings
    let apps: [AppPolicy]
    let proofs: [any ProofPartySettings]

    package init(
        apple: AppleSettings,
        google: GoogleSettings,
        apps: [AppPolicy],
        proofs: [any ProofPartySettings]
    ) {
        (self.apple, self.google) = (apple, google)
        (self.apps, self.proofs) = (apps, proofs)
    }
}
