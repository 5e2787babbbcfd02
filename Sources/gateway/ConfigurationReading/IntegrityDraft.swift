import Parties
import Rules
import Tokens

/// The keys of `kind: play-integrity`.
struct IntegrityDraft: Declared {
    static let keys = Keys<Self> {
        Key("service_account", into: \.account) { $0.filePath($1, use: "a file's path") }
            .means("The key file of a service account, with which Google reads tokens.")
        Key("decryption_key", into: \.decryption) { $0.filePath($1, use: "a file's path") }
            .means("In its place: a key of the Play Console, by which tokens are read here.")
        Key("verification_key", into: \.verification) { $0.filePath($1, use: "a file's path") }
            .means("The other key of the Play Console.")
        Key("max_token_age", into: \.ageMax) {
            $0.duration($1, in: .seconds(10) ... .seconds(IntegrityTerms.ageMost))
        }
        .means("How old a token may be by Google's timestamp. Without it, 5m.")
        Key("url", orNone: \.url, OutboundKeys.address)
            .means("Where tokens are read, instead of Google's address.")
        TokenCallSettings.keys.all.map { Key($0, of: \.calls) }
    }

    /// The field of the tokens, unless another is named.
    static let field = "app-attest-integrity-token"
    /// The keys about Google's service, which a local decoder does not ask.
    private static let serviceKeys = ["url"] + TokenCallSettings.keys.names

    private let reader: MappingReader
    private let name: String
    private var account: Located<String>?
    private var decryption: Located<String>?
    private var verification: Located<String>?
    private var ageMax: Located<Duration>?
    private var url: String?
    private var calls = TokenCallSettings()

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, name: String, isMeant: Bool) {
        self.reader = reader
        self.name = name
        Self.keys.read(reader, into: &self)
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
        let certificates = files.roots(reader)
        let decoder: IntegritySettings.Decoder
        if let account {
            guard let read = serviceAccount(account, files) else { return nil }
            var service = IntegrityService(name: name, account: read)
            if let url { service.url = url }
            service.calls = calls
            service.calls.roots = certificates
            decoder = .service(service)
        } else {
            let known = decryption.flatMap {
                key($0, files, .symmetricKey, ClassicTokenKeys.isDecryptionKey)
            }
            let signer = verification.flatMap {
                key($0, files, .publicKey, ClassicTokenKeys.isVerificationKey)
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
        let bytes = files.secret(file, limit: limit, use: use, .serviceAccount)
        guard let bytes else { return nil }
        var fault = "its token_uri is no https:// address"
        do throws(ServiceAccount.Fault) {
            let account = try ServiceAccount(json: bytes)
            if OutboundKeys.url(account.tokenURL) != nil { return account }
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
        _ kind: StandIn,
        _ isKey: ([UInt8]) -> Bool
    ) -> [UInt8]? {
        let what = kind == .publicKey ? "a key on P-256" : "32 bytes"
        let use = "a file with base64 of \(what), as the Play Console shows it"
        let limit = ClassicTokenKeys.fileBytesMax
        guard let bytes = files.secret(file, limit: limit, use: use, kind) else { return nil }
        if let key = ClassicTokenKeys.key(ofFile: bytes), isKey(key) { return key }
        reader.log.error(file, found: "another text in \(files.path(of: file))", use: use)
        return nil
    }
}

/// The keys of `kind: siteverify`.
struct SiteverifyDraft: Declared {
    static let keys = Keys<Self> {
        Key("service", into: \.service) { $0.word($1) }.means("Who is asked about tokens.")
        Key("url", orNone: \.url, OutboundKeys.address)
            .means("Where the service is asked, instead of its own address.")
        Key("secret_file", into: \.secret) { $0.filePath($1, use: "a file's path") }
            .means("A file with the service's secret alone.")
        Key("project", orNone: \.project, projectForm)
            .means("The id of the project in Google Cloud, for recaptcha-enterprise.")
        Key("site_key", orNone: \.siteKey, .text(wordUse, word))
            .means("The key that the page shows.")
        Key("action", orNone: \.action, .text(wordUse, word))
            .means("The action that the page names. Without it, any.")
        Key("hostname", into: \.hosts) { $0.texts($1, use: wordUse, word)?.map(\.value) }
            .means("The sites and the ids of apps of which tokens have to come. Without it, any.")
        Key("min_score", into: \.scoreMin) { $0.value($1, use: scoreUse) { TestScore($0) } }
            .means("The least score.")
        Key("max_score", into: \.scoreMax) { $0.value($1, use: scoreUse) { TestScore($0) } }
            .means("The greatest score.")
        Key("remote_address", \.sendsAddress, .flag)
            .means("Whether the service gets the client's address, which is personal data.")
        TokenCallSettings.keys.all.map { Key($0, of: \.calls) }
    }.checked { reader, draft in
        guard let least = draft.scoreMin, let greatest = draft.scoreMax,
            least.value > greatest.value
        else { return }
        reader.log.error(
            least,
            found: "a least score above the greatest",
            use: "min_score: at most max_score, which is \(greatest.value)"
        )
    }

    private static let scoreUse = "a score from 0 to 1, such as 0.5"

    private static let projectForm = ValueForm<String>.text(
        "the id of a Google Cloud project"
    ) { text in
        let isID = text.utf8.allSatisfy { byte in
            (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D
        }
        return isID && (1...63).contains(text.utf8.count) ? text : nil
    }

    private let reader: MappingReader
    private let name: String
    private var service: Located<SiteverifySettings.Service>?
    private var url: String?
    private var secret: Located<String>?
    private var project: String?
    private var siteKey: String?
    private var action: String?
    private var hosts: [String]?
    private var scoreMin: Located<TestScore>?
    private var scoreMax: Located<TestScore>?
    private var sendsAddress = false
    private var calls = TokenCallSettings()
    /// The service's address; `nil` where an error was reported.
    private var address: String?

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, name: String, isMeant: Bool) {
        self.reader = reader
        self.name = name
        if isMeant { Self.require(reader) }
        Self.keys.read(reader, into: &self)
        address = serviceAddress()
        if service?.value == .enterprise, isMeant {
            reader.require("site_key", use: "site_key: the key that the site or app shows")
        }
    }

    private static let wordUse = "1…256 visible characters"

    private static func word(_ text: String) -> String? {
        (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            ? text : nil
    }

    private static func require(_ reader: MappingReader) {
        let services = SiteverifySettings.Service.allCases.map(\.rawValue)
        reader.require("service", use: "service: \(services.joined(separator: " | "))")
        reader.require("secret_file", use: "secret_file: a file with the service's secret alone")
    }

    /// The operator's address, or the service's own.
    private func serviceAddress() -> String? {
        guard let service else { return nil }
        if reader.has("project"), service.value != .enterprise || reader.has("url") {
            reader.error(
                "project",
                found: "it where it has no effect",
                use: "project: with service: recaptcha-enterprise and without url"
            )
        }
        if reader.has("url") { return url }
        if let address = service.value.address { return address }
        guard let project else {
            if !reader.has("project") {
                reader.log.error(
                    service,
                    found: "recaptcha-enterprise without a project",
                    use: "project: the id of the Google Cloud project, or url:"
                )
            }
            return nil
        }
        return SiteverifySettings.Service.assessments(project: project)
    }

    /// The settings, with the files read; `nil` where there is an error, which was reported.
    func validated(_ files: NamedFiles) -> SiteverifySettings? {
        let log = reader.log
        let certificates = files.roots(reader)
        guard let text = secretText(files), let service, let address else { return nil }
        var valid = SiteverifySettings(
            name: name,
            service: service.value,
            url: address,
            secret: text
        )
        (valid.scoreMin, valid.scoreMax) = (scoreMin?.value, scoreMax?.value)
        (valid.siteKey, valid.action, valid.sendsAddress) = (siteKey, action, sendsAddress)
        valid.hostnames = Set((hosts ?? []).map { $0.lowercased() })
        valid.calls = calls
        valid.calls.roots = certificates
        if valid.hostnames.isEmpty {
            log.warning(
                reader,
                found: "no hostname: a token from any site that the service admits is good",
                use: "hostname: the site's name, or a list"
            )
        }
        return valid
    }

    private func secretText(_ files: NamedFiles) -> String? {
        guard let secret else { return nil }
        let path = files.path(of: secret)
        let use = "a readable file with one line, the service's secret"
        let limit = SiteverifySettings.secretBytesMax
        guard let bytes = files.secret(secret, limit: limit, use: use, .line) else { return nil }
        if let text = SiteverifySettings.secret(bytes) { return text }
        reader.log.error(secret, found: "no line of visible characters in \(path)", use: use)
        return nil
    }
}
