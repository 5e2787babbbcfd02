import Encodings
import KeyAttestation
import Rules

/// What an entry of `apps` says of an Android app, in the file's words.
struct AndroidDraft: Declared {
    enum Level: String, CaseIterable {
        case tee, strongbox
    }

    enum Origin: String, CaseIterable {
        case any, rkp
    }

    static let keys = Keys<Self> {
        Key("android", into: \.package) {
            $0.value($1, use: "a package name, as com.example.shop", package)
        }
        .means("The package name. Rules name the app by it.")
        Key("signers", into: \.signers) { $0.list($1, of: digests) { digest($0) } }
            .means("SHA-256 of the certificates that sign the app.")
        Key("versions", versions).means("The versions of the app that may enrol.")
        Key("level", \.level, .word)
            .means("Where keys live: tee takes StrongBox too, which many phones don't have.")
        Key("provisioning", \.provisioning, .word)
            .means("rkp: only phones with keys that Google certifies by network.")
        Key("boot", into: \.bootKeys) { $0.bootKeys($1, of: bootDigests) { digest($0) } }
            .means("The systems that may enrol: verified, or those with these boot keys, too.")
        Key("patch", patch).means("The security patches of phones that may enrol.")
        Key("max_key_age", orNone: \.keyDays, days(1))
            .means("A key that was enrolled longer ago is refused, and the app enrols a new one.")
        Key("status_max_age", \.statusAge, .time(.seconds(3600) ... .days(90)))
            .means("How old Google's list of revoked certificates may be.")
        Key("on_error", \.onError, .word).means("Whether phones enrol while there is no such list.")
        Key("integrity", into: \.integrity) { IntegrityRuleDraft($0, $1) }
            .means("What Google Play has to say of the phone when it enrols.")
    }

    private static let versions = Keys<Self> {
        Key("min", orNone: \.versionMin, .count(1...Int(Int32.max)))
            .means("The lowest version code.")
            .mandatory("min: the lowest version code that is accepted")
    }

    private static let patch = Keys<Self> {
        Key("max_age", orNone: \.patchDays, days(31))
            .means("The age of the system's patches when a key is enrolled.")
            .mandatory("max_age: the greatest age of a system, such as 365d")
    }

    private static func days(_ least: Int64) -> ValueForm<Int64> {
        ValueForm(
            { $0.count($1, of: .days(1), in: .days(least) ... .days(3650)) },
            text: { "\($0)d" }
        )
    }

    /// How long Google's list is good without a warning.
    private static let statusAgeUsual = Duration.days(7)

    private let reader: MappingReader
    private(set) var package: Located<String>?
    private var signers: [Located<[UInt8]>]?
    private var versionMin: Int?
    private var level = Level.tee
    private var provisioning = Origin.any
    private var bootKeys: [Located<[UInt8]>]?
    private var patchDays: Int64?
    private var keyDays: Int64?
    private var statusAge = Duration.seconds(AndroidDemands.Settings().statusSecondsMax)
    private var onError = DependencyErrorRule.refuse
    private var integrity: IntegrityRuleDraft?

    /// Nothing is read yet.
    init(_ reader: MappingReader) { self.reader = reader }

    private static let digests = "SHA-256 of signing certificates, 64 hexadecimal digits each"
    private static let bootDigests = "verified boot keys, 64 hexadecimal digits each"

    /// Android's rules for an application id: two or more segments of letters, digits and `_` that
    /// begin with a letter.
    private static func package(_ text: String) -> String? {
        let segments = text.split(separator: ".", omittingEmptySubsequences: false)
        let isName = segments.allSatisfy { segment in
            guard let first = segment.first, first.isASCII, first.isLetter else { return false }
            return segment.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        }
        return isName && segments.count >= 2 && text.utf8.count <= 223 ? text : nil
    }

    /// keytool writes colons between the bytes.
    private static func digest(_ text: String) -> [UInt8]? {
        Hex.decode(text.filter { $0 != ":" }).flatMap { $0.count == 32 ? $0 : nil }
    }

    /// What is asked of phones. Each weakening is a warning.
    func validated(_ proofs: RuleProofs) -> AndroidDemands {
        reader.require("signers", use: "signers: [\(Self.digests)]")
        var settings = AndroidDemands.Settings()
        settings.signers = Set(signers?.map(\.value) ?? [])
        settings.versionMin = versionMin.map { Int64($0) }
        if level == .strongbox { settings.phone.securityLevels = [.strongBox] }
        if provisioning == .rkp { settings.phone.provisioning = [.rkp] }
        settings.phone.bootKeys = Set(bootKeys?.map(\.value) ?? [])
        settings.patchDaysMax = patchDays
        settings.keyDaysMax = keyDays
        settings.statusSecondsMax = statusAge.components.seconds
        settings.onError = onError
        settings.integrity = integrity.flatMap { proofs.integrity($0) }
        warn()
        return AndroidDemands(settings)
    }

    private func warn() {
        if let first = bootKeys?.first {
            reader.log.warning(
                reader.place(of: "boot"),
                first.keyPath,
                found: "boot keys, so that phones with systems of these makers may enrol",
                use: "it only where you trust these systems as you trust a phone's maker"
            )
        }
        if statusAge > Self.statusAgeUsual {
            reader.warning(
                "status_max_age",
                found: "\(statusAge.settingText), for which a revoked phone may enrol",
                use: "\(Self.statusAgeUsual.settingText) at most"
            )
        }
        if onError == .forward {
            reader.warning(
                "on_error",
                found: "forward, so that revoked phones may enrol while Google's list is not known",
                use: "refuse"
            )
        }
    }
}

extension MappingReader {
    /// `verified`, for which the result is `nil`, or `{ keys: […] }`.
    fileprivate func bootKeys(
        _ key: String,
        of what: String,
        _ read: (String) -> [UInt8]?
    ) -> [Located<[UInt8]>]? {
        guard let node = node(key) else { return nil }
        guard case .mapping = node.content else {
            let use = "verified | { keys: [\(what)] }"
            _ = value(key, use: use, words: ["verified"]) { $0 == "verified" ? $0 : nil }
            return nil
        }
        let form = Keys<AndroidDraft> {
            Key("keys").means("The verified boot keys.").mandatory("keys: [\(what)]")
        }
        let keys = inner(key, form)
        return keys?.list("keys", of: what, read)
    }
}

/// What a rule or an app says of `integrity`.
struct IntegrityRuleDraft: Placed, Declared {
    static let keys = Keys<Self> {
        Key("proof", into: \.proof) {
            $0.value($1, use: "the name of a proof of kind: play-integrity") { $0 }
        }
        .means("The name of the proof. Without it, the only one of kind: play-integrity.")
        Key("device", \.devices, words()).means("Labels of which one is enough. Without it, any.")
        Key("licensed", \.needsLicense, .flag)
            .means("Whether the account must have the app from Google Play.")
        Key("recognized", \.needsRecognition, .flag)
            .means("Whether the app must be one that Google Play has distributed.")
        Key("activity_max", orNone: \.activityMax, .count(IntegrityRule.activityLevels))
            .means("The greatest level of tokens that the phone has asked for lately.")
        Key("play_protect", \.playProtect, words())
            .means("What Play Protect may say. Without it, anything.")
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

    private static func words<Word>() -> ValueForm<[Word]>
    where Word: RawRepresentable<String> & CaseIterable & Hashable & Sendable {
        let words = Word.allCases.map(\.rawValue)
        return .texts(words.joined(separator: ", "), words: words) { Word(rawValue: $0) }
    }

    let place: Problem.Place
    let keyPath: String
    private(set) var proof: Located<String>?
    private var devices: [IntegrityVerdict.Device] = []
    private var playProtect: [IntegrityVerdict.PlayProtect] = []
    private var activityMax: Int?
    private var needsLicense = false
    private var needsRecognition = false
    private var action = IntegrityRule.Action.mark

    /// `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        guard let inner = reader.inner(key, keys: Self.keys.names) else { return nil }
        (place, keyPath) = (inner.place, inner.keyPath)
        Self.keys.read(inner, into: &self)
    }

    func rule(_ proof: TokenProof) -> IntegrityRule {
        var rule = IntegrityRule(proof)
        rule.device = Set(devices)
        rule.needsLicense = needsLicense
        rule.needsRecognition = needsRecognition
        rule.activityMax = activityMax
        rule.playProtect = Set(playProtect)
        rule.action = action
        return rule
    }
}
