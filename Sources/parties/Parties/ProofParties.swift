package import Rules
package import Verification

/// The parties that know the tokens of the section `proofs`.
package struct ProofParties: Sendable {
    /// All that the gateway has. A new one is a line here.
    package static let standard: [any ProofParty.Type] = [
        TokenIssuers.self,
        SiteverifyParty.self,
        IntegrityParty.self,
    ]

    let all: [any ProofParty]

    init(
        _ kinds: [any ProofParty.Type],
        of proofs: [any ProofPartySettings],
        _ context: PartyContext
    ) {
        all = kinds.map { $0.made(proofs, context) }
    }

    /// The checks of a configuration's proofs, in their order.
    package func checkers(of proofs: [any ProofPartySettings], _ apps: [AppPolicy])
        -> [any TokenChecker]
    {
        proofs.map { proof in
            for party in all {
                if let checker = party.checker(of: proof, apps) { return checker }
            }
            preconditionFailure("ProofParties: a proof of no party was read")
        }
    }

    /// As ``ProofParty/serves(_:)``.
    package func serves(_ proofs: [any ProofPartySettings]) {
        for party in all { party.servesAny(proofs) }
    }

    /// The calls of all, which operators read as one.
    var calls: ProofCallFacts { all.map(\.calls).reduce(ProofCallFacts(), +) }
}
