package import Services

/// All parties of a gateway.
///
/// A new one is a line of ``init(_:proving:_:)``; one that knows tokens is a line of
/// ``ProofParties/standard``.
package struct PartyList: Sendable {
    /// Takes calls to Apple's services.
    package var appleServices: any AppleCalling { apple.calls }
    /// What requests and operators ask about devices.
    package let devices: DeviceCheckClient
    /// Google's list, for enrolments.
    package let statusList: CurrentStatusList
    package let proofs: ProofParties
    private let apple: AppleParty
    /// In the order of the pages.
    private let others: [any Party]

    /// - kinds: the parties whose proofs the settings may have.
    package init(
        _ settings: PartySettings,
        proving kinds: [any ProofParty.Type],
        _ context: PartyContext
    ) {
        apple = AppleParty(settings.apple, context)
        devices = DeviceCheckClient(settings.apple, over: apple.calls, context)
        statusList = CurrentStatusList()
        proofs = ProofParties(kinds, of: settings.proofs, context)
        let first: [any Party] = [
            devices,
            ReceiptParty(settings, over: apple.calls, context),
            StatusListKeeper(settings, of: statusList, context),
        ]
        others = first + (proofs.all as [any Party])
    }

    private var all: [any Party] { [apple] + others }

    package func start() {
        for party in all { party.start() }
    }

    package func loaded(_ settings: PartySettings) {
        for party in all { party.loaded(settings) }
    }

    package func end() {
        for party in all { party.end() }
    }

    /// As ``Party/stop(_:)``, one party after the other.
    package func stop(_ ended: @escaping @Sendable () -> Void) {
        all.reversed().reduce(ended) { next, party in { party.stop(next) } }()
    }

    /// What operators read, in the order of the pages.
    package var facts: [any PartyFacts] {
        apple.facts + [proofs.calls] + others.flatMap(\.facts)
    }
}

/// The same of the parties of an idle gateway.
package let idlePartyFacts: [any PartyFacts] = [
    AppleFacts(), ProofCallFacts(), DeviceFacts(), ReceiptFacts(), StatusListFacts?.none,
    [KeySetFacts](), TracingFacts(),
]
