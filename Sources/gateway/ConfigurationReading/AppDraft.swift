import AppAttest
import Cryptography
import KeyStore
import Parties
import Rules

/// An app in the file's words.
struct AppDraft: Declared {
    enum MissingExtensions: String, CaseIterable {
        case allow, refuse
    }

    /// What is said of an app of Apple's systems alone.
    private static let appleKeys = Keys<Self> {
        Key("client_data_hash", \.clientDataHash, .word)
            .means("What the app hands to attestKey: SHA-256 of a challenge's text, or the text.")
        Key("platform", \.platform, .word)
            .means("As what a certificate is checked that names no platform.")
        Key("validation_categories", into: \.categories) { reader, key in
            let words = (UInt32(1)...10).map { ValidationCategory(rawValue: $0).name }
                .filter { UInt32($0) == nil }
            return reader.list(key, of: words.joined(separator: ", "), words: words) { text in
                // 0 means that the system found the build invalid, which no operator wants to
                // admit.
                ValidationCategory(name: text).flatMap { $0 == .invalid ? nil : $0 }
            }
        }
        .means("The kinds of builds that are admitted. Without it, all.")
        Key("bundle_versions", into: \.bundleVersions) {
            $0.list($1, of: "values of CFBundleVersion") { text in
                (1...64).contains(text.utf8.count) ? text : nil
            }
        }
        .means("The builds that are admitted. Without it, all.")
        Key("missing_extensions", \.missingExtensions, .word)
            .means("What happens to keys of older systems, which state neither.")
        Key("receipt", \.receipt, .word).means("Whether the attestation's receipt must verify.")
    }

    static let keys = Keys<Self> {
        Key("id", into: \.id) {
            $0.value($1, use: "an App ID: prefix, dot, bundle identifier", appID)
        }
        .means("The App ID: the team's prefix, a dot, the bundle identifier.")
        Key("environments", into: \.environments) { reader, key in
            let words = KeyEnvironment.allCases.map(\.rawValue)
            return reader.list(key, of: words.joined(separator: ", "), words: words) {
                KeyEnvironment(rawValue: $0)
            }
        }
        .means("The environments whose keys are admitted. test never stands beside production.")
        appleKeys.all
        Key("test_root", into: \.testRoot) { $0.filePath($1, use: "a PEM file's path") }
            .means("One more authority that is believed, with the environment test.")
        AndroidDraft.keys.all.map { Key($0, of: \.android) }
    }

    let reader: MappingReader
    /// The App ID, or the package name of an Android app.
    private(set) var id: Located<String>?
    private(set) var environments: [Located<KeyEnvironment>]?
    private var clientDataHash = AppPolicy.ClientDataHash.sha256
    private var platform = AppPolicy.Platform.ios
    private var categories: [Located<ValidationCategory>]?
    private var bundleVersions: [Located<String>]?
    private var missingExtensions = MissingExtensions.allow
    private var receipt = AppPolicy.Receipt.optional
    private var testRoot: Located<String>?
    private var android: AndroidDraft

    init?(_ node: SourceNode, _ keyPath: String, log: ProblemLog) {
        guard let reader = MappingReader(node, keyPath, keys: Self.keys.names, log: log) else {
            return nil
        }
        self.reader = reader
        let isAndroid = reader.has("android")
        if !isAndroid {
            reader.require("id", use: "id: ABCDE12345.com.example.app")
            reader.require("environments", use: "environments: [production]")
        }
        android = AndroidDraft(reader)
        Self.keys.read(reader, into: &self)
        guard isAndroid else { return }
        id = android.package
        // A phone's hardware knows no builds for developers, so production need not be said.
        if !reader.has("environments") {
            environments = android.package.map { [$0.map { _ in .production }] }
        }
    }

    /// Whether rules that name no apps admit its keys, as ``AppPolicy/isProduction``.
    var isProduction: Bool { environments?.contains { $0.value == .production } ?? false }

    private static func appID(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "*") }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard isPlain, text.utf8.count <= 255, parts.count >= 2, parts.allSatisfy({ !$0.isEmpty })
        else { return nil }
        return text
    }

    /// The policy, when it is consistent.
    func validated(_ files: NamedFiles, _ proofs: RuleProofs) -> AppPolicy? {
        guard let id, let environments else { return nil }
        let named = Set(environments.map(\.value))
        var accepted: Set<AttestationEnvironment> = []
        if named.contains(.production) { accepted.insert(.production) }
        if named.contains(.development) { accepted.insert(.development) }
        refuseKeysOfOthers(files.log)
        guard !isAndroid else {
            var policy = AppPolicy(id: id.value, environments: accepted)
            policy.android = android.validated(proofs)
            return trusting(policy, named, files)
        }
        // All of Apple's begin with the id of a team.
        if !accepted.isEmpty, !AppleCredential.isID(String(id.value.prefix { $0 != "." })) {
            files.log.error(
                id,
                found: "\(SourceNode.quoted(id.value)) without the prefix of a team",
                use: "ten capital letters and digits before it, as in "
                    + "ABCDE12345.com.example.app: Apple attests no other App ID"
            )
        }
        var policy = AppPolicy(id: id.value, environments: accepted)
        policy.clientDataHash = clientDataHash
        policy.platform = platform
        policy.receipt = receipt
        let acceptsAbsent = missingExtensions != .refuse
        policy.builds = BuildPolicy(
            categories: categories.map { Set($0.map(\.value)) },
            acceptsAbsentCategory: acceptsAbsent,
            bundleVersions: bundleVersions.map { Set($0.map(\.value)) },
            acceptsAbsentBundleVersion: acceptsAbsent
        )
        return trusting(policy, named, files)
    }

    private var isAndroid: Bool { reader.has("android") }

    /// Reports what is said of another platform than the app's.
    private func refuseKeysOfOthers(_ log: ProblemLog) {
        let others = isAndroid ? ["id"] + Self.appleKeys.names : AndroidDraft.keys.names
        for key in others where reader.has(key) {
            reader.error(
                key,
                found: isAndroid ? "it in an Android app" : "it in an app of Apple's systems",
                use: isAndroid
                    ? "an entry of its own for the app of Apple's systems"
                    : "an entry of its own for the Android app, which begins with android:"
            )
        }
        let development = environments?.first { $0.value == .development }
        if isAndroid, let development {
            log.error(
                development,
                found: "development in an Android app",
                use: "production, or test with a test_root"
            )
        }
    }

    /// The policy with the authority of a test, where the app has one.
    private func trusting(
        _ policy: AppPolicy,
        _ named: Set<KeyEnvironment>,
        _ files: NamedFiles
    ) -> AppPolicy? {
        let log = files.log
        var policy = policy
        guard named.contains(.test) else {
            if let testRoot {
                log.error(
                    reader.place(of: "test_root"),
                    testRoot.keyPath,
                    found: "it without the environment test",
                    use: "environments: [test], or no test_root"
                )
            }
            return policy
        }
        let place = reader.place(of: "environments")
        if named.contains(.production) {
            log.error(
                place,
                reader.path("environments"),
                found: "test beside production",
                use: "test in a configuration of its own, never where production keys are admitted"
            )
        }
        reader.require("test_root", use: "test_root: the PEM file of the test authority")
        guard let testRoot else { return nil }
        policy.testRoots = roots(testRoot, files)
        log.warning(
            place,
            reader.path("environments"),
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
            files.log.error(path, found: "\(fault.found) (\(path.value))", use: use)
        } catch {
            files.log.error(path, found: "no certificate in \(path.value)", use: use)
        }
        return []
    }
}
