import Encodings
import KeyAttestation
package import Rules

extension AndroidDemands.Settings: Declared {
    private enum Level: String, CaseIterable {
        case tee, strongbox
    }

    private enum Origin: String, CaseIterable {
        case any, rkp
    }

    package static let keys = Keys<Self> {
        Key("signers", \.signerList, certificates)
            .means("SHA-256 of the certificates that sign the app.")
        Key("versions", versions).means("The versions of the app that may enrol.")
        Key("level", \.level, .word)
            .means("Where keys live: tee takes StrongBox too, which many phones don't have.")
        Key("provisioning", \.provisioning, .word)
            .means("rkp: only phones with keys that Google certifies by network.")
        Key("boot", \.bootKeys, boot)
            .means("The systems that may enrol: verified, or those with these boot keys, too.")
        Key("patch", patch).means("The security patches of phones that may enrol.")
        Key("max_key_age", orNone: \.keyDaysMax, days(1))
            .means("A key that was enrolled longer ago is refused, and the app enrols a new one.")
        Key("status_max_age", \.statusSecondsMax, .seconds(.seconds(3600) ... .days(90)))
            .means("How old Google's list of revoked certificates may be.")
        Key("on_error", \.onError, .word).means("Whether phones enrol while there is no such list.")
        Key("integrity", orNone: \.integrity, .mapping { _ in .unresolved })
            .means("What Google Play has to say of the phone when it enrols.")
    }

    private static let versions = Keys<Self> {
        Key("min", orNone: \.versionMin, version).means("The lowest version code.")
            .mandatory("min: the lowest version code that is accepted")
    }

    private static let version = ValueForm<Int64>(
        { $0.integer($1, in: 1...Int(Int32.max))?.map { Int64($0) } },
        text: { "\($0)" }
    )

    private static let patch = Keys<Self> {
        Key("max_age", orNone: \.patchDaysMax, days(31))
            .means("The age of the system's patches when a key is enrolled.")
            .mandatory("max_age: the greatest age of a system, such as 365d")
    }

    private static func days(_ least: Int64) -> ValueForm<Int64> {
        ValueForm(
            { $0.count($1, of: .days(1), in: .days(least) ... .days(3650)) },
            text: { "\($0)d" }
        )
    }

    private var signerList: [[UInt8]] {
        get { signers.sorted { Hex.text($0) < Hex.text($1) } }
        set { signers = Set(newValue) }
    }

    private var bootKeys: [[UInt8]] {
        get { phone.bootKeys.sorted { Hex.text($0) < Hex.text($1) } }
        set { phone.bootKeys = Set(newValue) }
    }

    private var level: Level {
        get { phone.securityLevels == [.strongBox] ? .strongbox : .tee }
        set {
            let levels = AndroidPolicy.standard.securityLevels
            phone.securityLevels = newValue == .strongbox ? [.strongBox] : levels
        }
    }

    private var provisioning: Origin {
        get { phone.provisioning == [.rkp] ? .rkp : .any }
        set {
            phone.provisioning = newValue == .rkp ? [.rkp] : AndroidPolicy.standard.provisioning
        }
    }

    static let digests = "SHA-256 of signing certificates, 64 hexadecimal digits each"
    private static let bootDigests = "verified boot keys, 64 hexadecimal digits each"

    private static let certificates = ValueForm<[[UInt8]]>.texts(
        digests,
        text: { Hex.text($0) },
        none: nil,
        digest
    )

    /// keytool writes colons between the bytes.
    private static func digest(_ text: String) -> [UInt8]? {
        Hex.decode(text.filter { $0 != ":" }).flatMap { $0.count == 32 ? $0 : nil }
    }

    private static let bootForm = Keys<Self> {
        Key("keys", \.bootKeys, .texts(bootDigests, text: { Hex.text($0) }, digest))
            .means("The verified boot keys.").mandatory("keys: [\(bootDigests)]")
    }

    /// `verified`, or `{ keys: […] }`.
    private static let boot = ValueForm<[[UInt8]]>(
        { reader, key in
            guard let node = reader.node(key) else { return nil }
            guard case .mapping = node.content else {
                let use = "verified | { keys: [\(bootDigests)] }"
                return reader.value(key, use: use, words: ["verified"]) { text in
                    text == "verified" ? [] : nil
                }
            }
            var settings = Self()
            guard let inner = reader.inner(key, keys: bootForm.names) else { return nil }
            bootForm.read(inner, into: &settings)
            return reader.located(key, settings.bootKeys)
        },
        text: { $0.isEmpty ? "verified" : $0.map { Hex.text($0) }.joined(separator: ", ") }
    )

    /// How long Google's list is good without a warning.
    private static let statusSecondsUsual: Int64 = 7 * 86_400

    /// Warns of each weakening.
    func warn(_ reader: MappingReader) {
        if !phone.bootKeys.isEmpty {
            reader.log.warning(
                reader.log.located("\(reader.path("boot")).keys[0]", ""),
                found: "boot keys, so that phones with systems of these makers may enrol",
                use: "it only where you trust these systems as you trust a phone's maker"
            )
        }
        if statusSecondsMax > Self.statusSecondsUsual {
            let age = Duration.seconds(statusSecondsMax).settingText
            reader.warning(
                "status_max_age",
                found: "\(age), for which a revoked phone may enrol",
                use: "\(Duration.seconds(Self.statusSecondsUsual).settingText) at most"
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
