package import Rules

// What a rule or an app says of `integrity`.
extension IntegrityRule: Declared {
    package static let keys = Keys<Self> {
        Key("proof", \.proofName, .text("the name of a proof of kind: play-integrity") { $0 })
            .means("The name of the proof.", otherwise: "the only one of kind: play-integrity")
        Key("device", \.devices, .words())
            .means("Labels of which one is enough.", otherwise: "any")
        Key("licensed", \.needsLicense, .flag)
            .means("Whether the account must have the app from Google Play.")
        Key("recognized", \.needsRecognition, .flag)
            .means("Whether the app must be one that Google Play has distributed.")
        Key("activity_max", orNone: \.activityMax, .count(activityLevels))
            .means("The greatest level of tokens that the phone has asked for lately.")
        Key("play_protect", \.protections, .words())
            .means("What Play Protect may say.", otherwise: "anything")
        Key("action", \.action, .word)
            .means("What is done where a condition does not hold: a mark, or a refusal.")
    }.checked { reader, rule in
        guard rule.action == .refuse, reader.has("play_protect") else { return }
        reader.warning(
            "play_protect",
            found: "it with action: refuse, which refuses every phone that Play Protect has not "
                + "looked at: with one gateway that was one good phone in seven",
            use: "action: mark until the report says how many it is with yours"
        )
    }

    /// A rule whose proof is not known yet, but its name at most.
    static var unresolved: IntegrityRule { IntegrityRule(named("")) }

    private static func named(_ name: String) -> TokenProof {
        TokenProof(name: name, index: 0, place: .field([]))
    }

    private var proofName: String {
        get { proof.name }
        set { proof = Self.named(newValue) }
    }

    private var devices: [IntegrityVerdict.Device] {
        get { device.sorted() }
        set { device = Set(newValue) }
    }

    private var protections: [IntegrityVerdict.PlayProtect] {
        get { IntegrityVerdict.PlayProtect.allCases.filter(playProtect.contains) }
        set { playProtect = Set(newValue) }
    }

    /// The rule with its proof.
    func resolved(_ proof: TokenProof) -> IntegrityRule {
        var rule = self
        rule.proof = proof
        return rule
    }
}
