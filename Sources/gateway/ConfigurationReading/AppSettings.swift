import AppAttest
import Cryptography
import KeyStore
import Parties
import Rules

/// An app as the file states it: an element of `apps`.
struct AppSettings: Declared, Sendable {
    enum MissingExtensions: String, CaseIterable {
        case allow, refuse
    }

    private var id = ""
    /// The package name of an Android app; `nil` for an app of Apple's systems.
    private var packageName: String?
    private(set) var environments: [KeyEnvironment] = []
    private var clientDataHash = AppPolicy.ClientDataHash.sha256
    private var platform = AppPolicy.Platform.ios
    private var categories: [ValidationCategory]?
    private var bundleVersions: [String]?
    private var missingExtensions = MissingExtensions.allow
    private var receipt = AppPolicy.Receipt.optional
    fileprivate var testRoot: String?
    fileprivate var phone = AndroidDemands.Settings()

    /// By which rules name it; empty where it could not be read.
    var name: String { packageName ?? id }

    /// Whether rules that name no apps admit its keys, as ``AppPolicy/isProduction``.
    var isProduction: Bool { environments.contains(.production) }

    /// What is said of an app of Apple's systems alone.
    fileprivate static let appleKeys = Keys<Self> {
        Key("client_data_hash", \.clientDataHash, .word)
            .means("What the app hands to attestKey: SHA-256 of a challenge's text, or the text.")
        Key("platform", \.platform, .word)
            .means("As what a certificate is checked that names no platform.")
        Key("validation_categories", orNone: \.categories, categoryNames)
            .means("The kinds of builds that are admitted.", otherwise: "all")
        Key("bundle_versions", orNone: \.bundleVersions, versions)
            .means("The builds that are admitted.", otherwise: "all")
        Key("missing_extensions", \.missingExtensions, .word)
            .means("What happens to keys of older systems, which state neither.")
        Key("receipt", \.receipt, .word).means("Whether the attestation's receipt must verify.")
    }

    /// What is said of an Android app alone.
    fileprivate static let androidKeys = Keys<Self> {
        Key("android", orNone: \.packageName, .name("a package name, as com.example.shop", package))
            .means("The package name. Rules name the app by it.")
        AndroidDemands.Settings.keys.all.map { Key($0, of: \.phone) }
    }

    package static let keys = Keys<Self> {
        Key("id", \.id, .name("an App ID: prefix, dot, bundle identifier", appID))
            .means("The App ID: the team's prefix, a dot, the bundle identifier.")
        Key("environments", \.environments, .words())
            .means(
                "The environments whose keys are admitted. test never stands beside production."
            )
        appleKeys.all
        Key("test_root", orNone: \.testRoot, .file("a PEM file's path"))
            .means("One more authority that is believed, with the environment test.")
        androidKeys.all
    }.checked { reader, app in
        guard reader.has("android") else {
            reader.require("id", use: "id: ABCDE12345.com.example.app")
            reader.require("environments", use: "environments: [production]")
            return
        }
        // A phone's hardware knows no builds for developers, so production need not be said.
        if !reader.has("environments"), app.packageName != nil { app.environments = [.production] }
    }

    private static let categoryNames: ValueForm<[ValidationCategory]> = {
        let words = (UInt32(1)...10).map { ValidationCategory(rawValue: $0).name }
            .filter { UInt32($0) == nil }
        let use = words.joined(separator: ", ")
        return .texts(use, words: words, text: { $0.name }) { text in
            // 0 means that the system found the build invalid, which no operator wants to admit.
            ValidationCategory(name: text).flatMap { $0 == .invalid ? nil : $0 }
        }
    }()

    private static let versions = ValueForm<[String]>.texts(
        "values of CFBundleVersion",
        text: \.self
    ) { text in
        (1...64).contains(text.utf8.count) ? text : nil
    }

    private static func appID(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "*") }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard isPlain, text.utf8.count <= 255, parts.count >= 2, parts.allSatisfy({ !$0.isEmpty })
        else { return nil }
        return text
    }

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

    /// The policy as far as the file states it.
    ///
    /// - integrity: what is asked of Google Play's verdict, with its proof.
    fileprivate func policy(_ integrity: IntegrityRule?) -> AppPolicy {
        var accepted: Set<AttestationEnvironment> = []
        if environments.contains(.production) { accepted.insert(.production) }
        if environments.contains(.development) { accepted.insert(.development) }
        var policy = AppPolicy(id: name, environments: accepted)
        guard packageName == nil else {
            var phone = phone
            phone.integrity = integrity
            policy.android = AndroidDemands(phone)
            return policy
        }
        policy.clientDataHash = clientDataHash
        policy.platform = platform
        policy.receipt = receipt
        policy.builds = BuildPolicy(
            categories: categories.map { Set($0) },
            acceptsAbsentCategory: missingExtensions != .refuse,
            bundleVersions: bundleVersions.map { Set($0) },
            acceptsAbsentBundleVersion: missingExtensions != .refuse
        )
        return policy
    }

    /// The differences of apps are those of their names.
    static let differences = ValueForm<[AppSettings]>.named({ $0.name }, at: { "\($0)[\($1)]" })
}

extension Stated<AppSettings> {
    /// The App ID or the package name; `nil` where it could not be read.
    var name: Located<String>? {
        value.name.isEmpty ? nil : reader.located(isAndroid ? "android" : "id", value.name)
    }

    private var isAndroid: Bool { reader.has("android") }

    /// The policy, when it is consistent.
    func validated(_ files: NamedFiles, _ proofs: RuleProofs) -> AppPolicy? {
        guard let name, isAndroid || gives(["environments"]) else { return nil }
        refuseKeysOfOthers()
        guard !isAndroid else {
            reader.require("signers", use: "signers: [\(AndroidDemands.Settings.digests)]")
            let integrity = value.phone.integrity.flatMap {
                proofs.integrity($0, at: reader.path("integrity"))
            }
            value.phone.warn(reader)
            return trusting(value.policy(integrity), files)
        }
        let policy = value.policy(nil)
        // All of Apple's begin with the id of a team.
        let team = String(name.value.prefix { $0 != "." })
        if !policy.environments.isEmpty, !AppleCredential.isID(team),
            !files.log.assumes(valueAt: name.keyPath)
        {
            files.log.error(
                name,
                found: "\(SourceNode.quoted(name.value)) without the prefix of a team",
                use: "ten capital letters and digits before it, as in "
                    + "ABCDE12345.com.example.app: Apple attests no other App ID"
            )
        }
        return trusting(policy, files)
    }

    /// Reports what is said of another platform than the app's.
    private func refuseKeysOfOthers() {
        let apple = ["id"] + AppSettings.appleKeys.names
        for key in isAndroid ? apple : AppSettings.androidKeys.names where reader.has(key) {
            reader.error(
                key,
                found: isAndroid ? "it in an Android app" : "it in an app of Apple's systems",
                use: isAndroid
                    ? "an entry of its own for the app of Apple's systems"
                    : "an entry of its own for the Android app, which begins with android:"
            )
        }
        if isAndroid, let place = value.environments.firstIndex(of: .development) {
            reader.log.error(
                reader.log.located("\(reader.path("environments"))[\(place)]", ""),
                found: "development in an Android app",
                use: "production, or test with a test_root"
            )
        }
    }

    /// The policy with the authority of a test, where the app has one.
    private func trusting(
        _ policy: AppPolicy,
        _ files: NamedFiles
    ) -> AppPolicy? {
        let testRoot = located("test_root", \.testRoot)?.map { $0 ?? "" }
        var policy = policy
        guard value.environments.contains(.test) else {
            if testRoot != nil {
                reader.error(
                    "test_root",
                    found: "it without the environment test",
                    use: "environments: [test], or no test_root"
                )
            }
            return policy
        }
        if value.environments.contains(.production) {
            reader.error(
                "environments",
                found: "test beside production",
                use: "test in a configuration of its own, never where production keys are admitted"
            )
        }
        reader.require("test_root", use: "test_root: the PEM file of the test authority")
        guard let testRoot else { return nil }
        policy.testRoots = roots(testRoot, files)
        reader.warning(
            "environments",
            found: "a test app",
            use: "it only where keys of \(testRoot.value) may pass for devices"
        )
        return policy
    }

    private func roots(_ path: Located<String>, _ files: NamedFiles) -> [X509Certificate] {
        let use = "a PEM file with the certificate of the test authority"
        do {
            let file = files.path(of: path)
            let bytes = try files.disk.contents(of: file, limit: X509Certificate.pemBytesMax)
            return try X509Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
        } catch let fault as FileFault {
            let isAssumed = files.log.assumes(path, at: files.path(of: path), fault)
            guard !isAssumed else { return [AppleRoots.appAttestation] }
            files.log.error(path, found: "\(fault.found) (\(path.value))", use: use)
        } catch {
            files.log.error(path, found: "no certificate in \(path.value)", use: use)
        }
        return []
    }
}
