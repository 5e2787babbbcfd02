import Rules
package import SettingsReading

/// The keys of `kind: siteverify`.
package struct SiteverifyDraft: Declared, ProofDraft {
    package static let keys = Keys<Self> {
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

    package static var keyNames: [String] { keys.names }

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
    package init(_ reader: MappingReader, name: String, isMeant: Bool) {
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
    package func validated(_ files: NamedFiles, hasStore: Bool) -> SiteverifySettings? {
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
