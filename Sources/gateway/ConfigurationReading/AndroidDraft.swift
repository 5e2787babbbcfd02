import Encodings
import KeyAttestation
import Rules

/// What an entry of `apps` says of an Android app, in the file's words.
struct AndroidDraft {
    enum Level: String, CaseIterable {
        case tee, strongbox
    }

    enum Origin: String, CaseIterable {
        case any, rkp
    }

    static let keys = [
        "android", "signers", "versions", "level", "provisioning", "boot", "patch",
        "max_key_age", "status_max_age", "on_error", "integrity",
    ]

    private static let day = Duration.seconds(86_400)
    /// How long Google's list is good without a warning.
    private static let statusAgeUsual = day * 7

    let package: Located<String>?
    private let reader: MappingReader
    private let signers: [Located<[UInt8]>]?
    private let versionMin: Located<Int>?
    private let level: Located<Level>?
    private let provisioning: Located<Origin>?
    private let bootKeys: [Located<[UInt8]>]?
    /// In days.
    private let patchAge: Located<Int64>?
    private let keyAge: Located<Int64>?
    private let statusAge: Located<Duration>?
    private let onError: Located<DependencyErrorRule>?
    private let integrity: IntegrityRuleDraft?

    init(_ reader: MappingReader) {
        self.reader = reader
        package = reader.value("android", use: "a package name, as com.example.shop", Self.package)
        signers = reader.list("signers", of: Self.digests) { Self.digest($0) }
        let versions = reader.inner("versions", keys: ["min"])
        versions?.require("min", use: "min: the lowest version code that is accepted")
        versionMin = versions?.integer("min", in: 1...Int(Int32.max))
        level = reader.word("level")
        provisioning = reader.word("provisioning")
        bootKeys = reader.bootKeys("boot", of: Self.bootDigests) { Self.digest($0) }
        let patch = reader.inner("patch", keys: ["max_age"])
        patch?.require("max_age", use: "max_age: the greatest age of a system, such as 365d")
        patchAge = patch?.count("max_age", of: Self.day, in: (Self.day * 31)...(Self.day * 3650))
        keyAge = reader.count("max_key_age", of: Self.day, in: Self.day...(Self.day * 3650))
        statusAge = reader.duration("status_max_age", in: .seconds(3600)...(Self.day * 90))
        onError = reader.word("on_error")
        integrity = IntegrityRuleDraft(reader, "integrity")
    }

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
        settings.versionMin = versionMin.map { Int64($0.value) }
        if level?.value == .strongbox { settings.phone.securityLevels = [.strongBox] }
        if provisioning?.value == .rkp { settings.phone.provisioning = [.rkp] }
        settings.phone.bootKeys = Set(bootKeys?.map(\.value) ?? [])
        settings.patchDaysMax = patchAge?.value
        settings.keyDaysMax = keyAge?.value
        if let statusAge { settings.statusSecondsMax = statusAge.value.components.seconds }
        settings.onError = onError?.value ?? .refuse
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
        if let statusAge, statusAge.value > Self.statusAgeUsual {
            reader.log.warning(
                statusAge,
                found: "\(statusAge.value.settingText), for which a revoked phone may enrol",
                use: "\(Self.statusAgeUsual.settingText) at most"
            )
        }
        if let onError, onError.value == .forward {
            reader.log.warning(
                onError,
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
        let keys = inner(key, keys: ["keys"])
        keys?.require("keys", use: "keys: [\(what)]")
        return keys?.list("keys", of: what, read)
    }
}

/// What a rule or an app says of `integrity`.
struct IntegrityRuleDraft: Placed {
    private static let keys = [
        "proof", "device", "licensed", "recognized", "activity_max", "play_protect", "action",
    ]

    let place: Problem.Place
    let keyPath: String
    let proof: Located<String>?
    private let devices: [Located<IntegrityVerdict.Device>]?
    private let playProtect: [Located<IntegrityVerdict.PlayProtect>]?
    private let activityMax: Located<Int>?
    private let needsLicense: Bool
    private let needsRecognition: Bool
    private let action: Located<IntegrityRule.Action>?

    /// `nil`, with a problem at the key's place, when it can't be read.
    init?(_ reader: MappingReader, _ key: String) {
        guard let inner = reader.inner(key, keys: Self.keys) else { return nil }
        (place, keyPath) = (inner.place, inner.keyPath)
        proof = inner.value("proof", use: "the name of a proof of kind: play-integrity") { $0 }
        let labels = IntegrityVerdict.Device.allCases.map(\.rawValue)
        devices = inner.list("device", of: labels.joined(separator: ", "), words: labels) {
            IntegrityVerdict.Device(rawValue: $0)
        }
        let words = IntegrityVerdict.PlayProtect.allCases.map(\.rawValue)
        playProtect = inner.list("play_protect", of: words.joined(separator: ", "), words: words) {
            IntegrityVerdict.PlayProtect(rawValue: $0)
        }
        activityMax = inner.integer("activity_max", in: IntegrityRule.activityLevels)
        needsLicense = inner.flag("licensed")?.value ?? false
        needsRecognition = inner.flag("recognized")?.value ?? false
        action = inner.word("action")
        guard let action, action.value == .refuse, inner.has("play_protect") else { return }
        inner.warning(
            "play_protect",
            found: "it with action: refuse, which refuses every phone that Play Protect has not "
                + "looked at: with one gateway that was one good phone in seven",
            use: "action: mark until the report says how many it is with yours"
        )
    }

    func rule(_ proof: TokenProof) -> IntegrityRule {
        var rule = IntegrityRule(proof)
        rule.device = Set(devices?.map(\.value) ?? [])
        rule.needsLicense = needsLicense
        rule.needsRecognition = needsRecognition
        rule.activityMax = activityMax?.value
        rule.playProtect = Set(playProtect?.map(\.value) ?? [])
        rule.action = action?.value ?? .mark
        return rule
    }
}
