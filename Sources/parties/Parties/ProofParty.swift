package import Rules
package import SettingsReading
package import Verification

/// A party that knows the tokens of proofs of one `kind`, so that a request may wait for it.
///
/// A party is a folder with its settings, its calls, the meaning of its answers, and what operators
/// read of it. `ProofParties.standard` has one line for each.
package protocol ProofParty: Party {
    associatedtype Settings: ProofPartySettings

    /// - settings: those of the party's proofs.
    init(_ settings: [Settings], _ context: PartyContext)

    /// The check of a proof's tokens, for all event loops.
    func checker(_ settings: Settings, _ apps: [AppPolicy]) -> any TokenChecker

    /// A reload is about to serve these proofs: from then on their tokens may be checked. Used
    /// tokens stay used.
    func serves(_ settings: [Settings])

    /// A reload serves these proofs alone.
    func loaded(_ settings: [Settings])

    /// What operators read of its calls about tokens, beside ``Party/facts``.
    var calls: ProofCallFacts { get }
}

extension ProofParty {
    package func loaded(_ settings: [Settings]) {}

    package func loaded(_ settings: PartySettings) {
        loaded(settings.proofs.compactMap { $0 as? Settings })
    }

    package var calls: ProofCallFacts { ProofCallFacts() }
}

/// The settings of a proof of one kind, and how a file states them.
package protocol ProofPartySettings: Sendable {
    associatedtype Draft: ProofDraft where Draft.Settings == Self

    /// `kind`.
    static var kind: String { get }

    /// The field of the tokens where a proof names none; `nil` where it has to name one.
    static var field: String? { get }

    /// Whether its tokens say nothing without the signature of a key.
    static var isBound: Bool { get }

    /// What differs in other settings of the same kind. Of secrets it tells only that they differ.
    func changes(to next: Self, at keyPath: String) -> [SettingChange]

    /// Asks the proof's service whether the proof would work; `nil` where no service is asked.
    func asking(_ trial: PartyTrial) -> PartyTrial.Asking?
}

extension ProofPartySettings {
    package static var field: String? { nil }

    package static var isBound: Bool { false }

    package func asking(_: PartyTrial) -> PartyTrial.Asking? { nil }
}

extension ProofPartySettings where Self: Equatable {
    package func changes(to next: Self, at keyPath: String) -> [SettingChange] {
        self == next ? [] : [SettingChange(keyPath: keyPath)]
    }
}

/// The settings of a proof as a file states them, before the files that it names are read.
package protocol ProofDraft {
    associatedtype Settings: ProofPartySettings

    static var keyNames: [String] { get }

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, name: String, isMeant: Bool)

    /// Whether its tokens are remembered in the store.
    var needsStore: Bool { get }

    /// The settings; `nil` where there is an error, which was reported.
    func validated(_ files: NamedFiles, hasStore: Bool) -> Settings?
}

extension ProofDraft {
    package var needsStore: Bool { true }
}

// The same for settings of any kind.

extension ProofParty {
    package static var kind: String { Settings.kind }

    package static var field: String? { Settings.field }

    package static var isBound: Bool { Settings.isBound }

    package static var keyNames: [String] { Settings.Draft.keyNames }

    package static func draft(
        _ reader: MappingReader,
        name: String,
        isMeant: Bool
    ) -> any ProofDraft {
        Settings.Draft(reader, name: name, isMeant: isMeant)
    }

    static func made(
        _ proofs: [any ProofPartySettings],
        _ context: PartyContext
    ) -> any ProofParty {
        Self(proofs.compactMap { $0 as? Settings }, context)
    }

    /// `nil` for a proof of another party.
    func checker(of proof: any ProofPartySettings, _ apps: [AppPolicy])
        -> (any TokenChecker)?
    {
        (proof as? Settings).map { checker($0, apps) }
    }

    func servesAny(_ proofs: [any ProofPartySettings]) {
        serves(proofs.compactMap { $0 as? Settings })
    }
}

extension ProofPartySettings {
    /// What differs in the settings of a proof of the same name.
    package func changes(toAny next: any ProofPartySettings, at keyPath: String) -> [SettingChange]
    {
        guard let next = next as? Self else { return [SettingChange(keyPath: "\(keyPath).kind")] }
        return changes(to: next, at: keyPath)
    }
}
