import OutboundCalls
import Rules
import Tokens

/// The keys of `kind: play-integrity`.
struct IntegrityDraft {
    static let keys =
        ["service_account", "decryption_key", "verification_key", "max_token_age"] + serviceKeys
    /// The field of the tokens, unless another is named.
    static let field = "app-attest-integrity-token"
    /// The keys about Google's service, which a local decoder does not ask.
    private static let serviceKeys = ["url"] + TokenCallSettings.keys.names

    private let reader: MappingReader
    private let name: String
    private let account: Located<String>?
    private let decryption: Located<String>?
    private let verification: Located<String>?
    private let ageMax: Located<Duration>?
    private let url: Located<String>?
    private var calls = TokenCallSettings()

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, name: String, isMeant: Bool) {
        self.reader = reader
        self.name = name
        func file(_ key: String) -> Located<String>? {
            reader.filePath(key, use: "a file's path")
        }
        account = file("service_account")
        decryption = file("decryption_key")
        verification = file("verification_key")
        let ageMost = Duration.seconds(IntegrityTerms.ageMost)
        ageMax = reader.duration("max_token_age", in: .seconds(10)...ageMost)
        url = reader.value("url", use: "https://host/path", OutboundDraft.url)
        TokenCallSettings.keys.read(reader, into: &calls)
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
            if let url { service.url = url.value }
            service.calls = calls
            service.calls.roots = certificates
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

/// The keys of `kind: siteverify`.
struct SiteverifyDraft {
    static let keys =
        [
            "service", "url", "secret_file", "project", "site_key", "action", "hostname",
            "min_score", "max_score", "remote_address",
        ] + TokenCallSettings.keys.names

    private let reader: MappingReader
    /// The settings, with all that needs no file; `nil` where an error was reported.
    private let settings: SiteverifySettings?
    private let secret: Located<String>?

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, name: String, isMeant: Bool) {
        self.reader = reader
        if isMeant { Self.require(reader) }
        let service = reader.word("service", SiteverifySettings.Service.self)
        let url = Self.url(reader, service)
        secret = reader.filePath("secret_file", use: "a file's path")
        let least = Self.score(reader, "min_score")
        let greatest = Self.score(reader, "max_score")
        if let least, let greatest, least.value > greatest.value {
            reader.log.error(
                least,
                found: "a least score above the greatest",
                use: "min_score: at most max_score, which is \(greatest.value)"
            )
        }
        // The secret is read later.
        var read = SiteverifySettings(
            name: name,
            service: service?.value ?? .recaptcha,
            url: url ?? "",
            secret: ""
        )
        (read.scoreMin, read.scoreMax) = (least?.value, greatest?.value)
        read.siteKey = reader.value("site_key", use: Self.wordUse, Self.word)?.value
        read.action = reader.value("action", use: Self.wordUse, Self.word)?.value
        let hosts = reader.texts("hostname", use: Self.wordUse, Self.word) ?? []
        read.hostnames = Set(hosts.map { $0.value.lowercased() })
        if let flag = reader.flag("remote_address") { read.sendsAddress = flag.value }
        TokenCallSettings.keys.read(reader, into: &read.calls)
        settings = service == nil || url == nil ? nil : read
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

    private static func score(_ reader: MappingReader, _ key: String) -> Located<TestScore>? {
        reader.value(key, use: "a score from 0 to 1, such as 0.5") { TestScore($0) }
    }

    /// The address: the operator's, or the service's own.
    private static func url(
        _ reader: MappingReader,
        _ service: Located<SiteverifySettings.Service>?
    ) -> String? {
        let url = reader.value("url", use: "https://host/path", OutboundDraft.url)
        let project = reader.value("project", use: "the id of a Google Cloud project") { text in
            let isID = text.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D
            }
            return isID && (1...63).contains(text.utf8.count) ? text : nil
        }
        guard let service else { return nil }
        if reader.has("project"), service.value != .enterprise || reader.has("url") {
            reader.error(
                "project",
                found: "it where it has no effect",
                use: "project: with service: recaptcha-enterprise and without url"
            )
        }
        if reader.has("url") { return url?.value }
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
        return SiteverifySettings.Service.assessments(project: project.value)
    }

    /// The settings, with the files read; `nil` where there is an error, which was reported.
    func validated(_ files: NamedFiles) -> SiteverifySettings? {
        let log = reader.log
        let certificates = files.roots(reader)
        guard let text = secretText(files), var valid = settings else { return nil }
        (valid.secret, valid.calls.roots) = (text, certificates)
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
        guard let bytes = files.secret(secret, limit: limit, use: use) else { return nil }
        if let text = SiteverifySettings.secret(bytes) { return text }
        reader.log.error(secret, found: "no line of visible characters in \(path)", use: use)
        return nil
    }
}
