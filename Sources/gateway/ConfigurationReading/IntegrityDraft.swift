import OutboundCalls
import Rules
import Tokens

/// The keys of `kind: play-integrity`.
struct IntegrityDraft {
    static let keys = [
        "service_account", "decryption_key", "verification_key", "max_token_age", "url", "timeout",
        "rate", "concurrent", "queue", "roots", "proxy",
    ]
    /// The field of the tokens, unless another is named.
    static let field = "app-attest-integrity-token"
    /// The keys about Google's service, which a local decoder does not ask.
    private static let serviceKeys = [
        "url", "timeout", "rate", "concurrent", "queue", "roots", "proxy",
    ]

    private let reader: MappingReader
    private let name: String
    private let account: Located<String>?
    private let decryption: Located<String>?
    private let verification: Located<String>?
    private let ageMax: Located<Duration>?
    private let url: Located<String>?
    private let calls: TokenCallSettings
    private let roots: Located<String>?
    private let proxy: String?

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, name: String, isMeant: Bool) {
        self.reader = reader
        self.name = name
        func file(_ key: String) -> Located<String>? {
            reader.value(key, use: "a file's path") { $0.isEmpty ? nil : $0 }
        }
        account = file("service_account")
        decryption = file("decryption_key")
        verification = file("verification_key")
        let ageMost = Duration.seconds(IntegrityTerms.ageMost)
        ageMax = reader.duration("max_token_age", in: .seconds(10)...ageMost)
        url = reader.value("url", use: "https://host/path", OutboundDraft.url)
        calls = TokenCallSettings(reader)
        roots = file("roots")
        proxy = OutboundDraft.proxy(reader)
        if isMeant { checkDecoder() }
    }

    /// Google's service or the keys of the Play Console, and nothing of the other one.
    private func checkDecoder() {
        let keys = ["decryption_key", "verification_key"].filter { reader.has($0) }
        guard reader.has("service_account") == keys.isEmpty else {
            reader.log.error(
                reader,
                found: keys.isEmpty
                    ? "neither service_account nor decryption_key"
                    : "service_account and \(keys[0])",
                use: "service_account: the key file of a service account, or decryption_key and "
                    + "verification_key: files with the Play Console's keys"
            )
            return
        }
        guard !keys.isEmpty else { return }
        for key in ["decryption_key", "verification_key"] where !reader.has(key) {
            reader.require(key, use: "\(key): a file with this key of the Play Console")
        }
        for key in Self.serviceKeys where reader.has(key) {
            reader.error(
                key,
                found: "it with keys of the Play Console, where no service is asked",
                use: "service_account in the place of the keys, or no \(key)"
            )
        }
    }

    /// The settings, with the files read; `nil` where there is an error, which was reported.
    func validated(_ files: NamedFiles, hasStore: Bool) -> IntegritySettings? {
        if !hasStore {
            reader.log.error(
                reader,
                found: "it without a store, which remembers the tokens that were used",
                use: "store: { sqlite: portcullis.db }"
            )
        }
        let certificates = roots.flatMap { files.certificates($0) }
        let decoder: IntegritySettings.Decoder
        if let account {
            guard let read = serviceAccount(account, files) else { return nil }
            var service = IntegrityService(name: name, account: read)
            if let url { service.url = url.value }
            service.calls = calls
            (service.calls.roots, service.calls.proxy) = (certificates, proxy)
            decoder = .service(service)
        } else {
            let known = decryption.flatMap {
                key($0, files, "32 bytes", ClassicTokenKeys.isDecryptionKey)
            }
            let signer = verification.flatMap {
                key($0, files, "a key on P-256", ClassicTokenKeys.isVerificationKey)
            }
            guard let known, let signer,
                let keys = ClassicTokenKeys(decryption: known, verification: signer)
            else { return nil }
            decoder = .local(keys)
        }
        var settings = IntegritySettings(name: name, decoder: decoder)
        if let ageMax { settings.ageMax = ageMax.value.components.seconds }
        return settings
    }

    private func serviceAccount(_ file: Located<String>, _ files: NamedFiles) -> ServiceAccount? {
        let use = "the JSON key file of a service account, as Google Cloud gives it out"
        let limit = ServiceAccount.fileBytesMax
        guard let bytes = files.secret(file, limit: limit, use: use) else { return nil }
        var fault = "its token_uri is no https:// address"
        do throws(ServiceAccount.Fault) {
            let account = try ServiceAccount(json: bytes)
            if OutboundDraft.url(account.tokenURL) != nil { return account }
        } catch {
            fault = error.detail
        }
        let found = "no key of a service account in \(files.path(of: file)), since \(fault)"
        reader.log.error(file, found: found, use: use)
        return nil
    }

    private func key(
        _ file: Located<String>,
        _ files: NamedFiles,
        _ what: String,
        _ isKey: ([UInt8]) -> Bool
    ) -> [UInt8]? {
        let use = "a file with base64 of \(what), as the Play Console shows it"
        let limit = ClassicTokenKeys.fileBytesMax
        guard let bytes = files.secret(file, limit: limit, use: use) else { return nil }
        if let key = ClassicTokenKeys.key(ofFile: bytes), isKey(key) { return key }
        reader.log.error(file, found: "another text in \(files.path(of: file))", use: use)
        return nil
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

extension IntegrityRule {
    /// What is asked, in words.
    var text: String {
        var asked: [String] = []
        if !device.isEmpty {
            asked.append("device \(device.sorted().map(\.rawValue).joined(separator: " or "))")
        }
        if needsRecognition { asked.append("recognized") }
        if needsLicense { asked.append("licensed") }
        if let activityMax { asked.append("activity at most \(activityMax)") }
        if !playProtect.isEmpty {
            asked.append(
                "Play Protect \(playProtect.map(\.rawValue).sorted().joined(separator: " or "))"
            )
        }
        let conditions = asked.isEmpty ? "" : " that says \(asked.joined(separator: ", "))"
        let end = action == .mark ? "marked otherwise" : "refused otherwise"
        return "Android phones: a token of \(proof.name) (\(proof.place.text))\(conditions), \(end)"
    }
}
