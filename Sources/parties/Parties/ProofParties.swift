package import Rules
package import Services
package import Verification

/// The parties that know the tokens of the section `proofs`.
package struct ProofParties: Sendable {
    /// All that the gateway has. A new one is a line here.
    package static let standard: [any ProofParty.Type] = [
        TokenIssuers.self,
        SiteverifyParty.self,
        IntegrityParty.self,
    ]

    private let parties: [any ProofParty]

    package init(
        _ kinds: [any ProofParty.Type],
        _ proofs: [any ProofPartySettings],
        _ context: PartyContext
    ) {
        parties = kinds.map { $0.made(proofs, context) }
    }

    /// The checks of a configuration's proofs, in their order.
    package func checkers(of proofs: [any ProofPartySettings], _ apps: [AppPolicy])
        -> [any TokenChecker]
    {
        proofs.map { proof in
            for party in parties {
                if let checker = party.checker(of: proof, apps) { return checker }
            }
            preconditionFailure("ProofParties: a proof of no party was read")
        }
    }

    /// As ``ProofParty/serves(_:)``.
    package func serves(_ proofs: [any ProofPartySettings]) {
        for party in parties { party.servesAny(proofs) }
    }

    /// As ``ProofParty/loaded(_:)``.
    package func loaded(_ proofs: [any ProofPartySettings]) {
        for party in parties { party.loadedAny(proofs) }
    }

    /// What operators read: the calls of all parties, then what each has beside.
    package var facts: (calls: ProofCallFacts, others: [any PartyFacts]) {
        let calls = parties.map(\.calls).reduce(ProofCallFacts(), +)
        return (calls, parties.flatMap(\.facts))
    }

    package func end() {
        for party in parties { party.end() }
    }

    /// As ``ProofParty/stop(_:)``, one party after the other.
    package func stop(_ ended: @escaping @Sendable () -> Void) {
        parties.reversed().reduce(ended) { next, party in { party.stop(next) } }()
    }
}

/// What operators read of the parties of an idle gateway, in the order of the pages.
package let idlePartyFacts: [any PartyFacts] = [
    AppleFacts(), ProofCallFacts(), DeviceFacts(), ReceiptFacts(), StatusListFacts?.none,
    [KeySetFacts](), TracingFacts(),
]
