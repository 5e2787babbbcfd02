import Rules
package import SettingsReading
import Tokens

/// The keys of `kind: play-integrity`.
package struct IntegrityDraft: Declared, ProofDraft {
    package static let keys = Keys<Self> {
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
            .means("Where the service is asked, instead of its own address.")
        TokenCallSettings.keys.all.map { Key($0, of: \.calls) }
    }

    package static var keyNames: [String] { keys.names }

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
    package init(_ reader: MappingReader, name: String, isMeant: Bool) {
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
    package func validated(_ files: NamedFiles, hasStore: Bool) -> IntegritySettings? {
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
                key(
                    $0,
                    files,
                    as: ("32 bytes", .symmetricKey),
                    where: ClassicTokenKeys.isDecryptionKey
                )
            }
            let signer = verification.flatMap {
                key(
                    $0,
                    files,
                    as: ("a key on P-256", .publicKey),
                    where: ClassicTokenKeys.isVerificationKey
                )
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
        as kind: (what: String, standIn: StandIn),
        where isKey: ([UInt8]) -> Bool
    ) -> [UInt8]? {
        let use = "a file with base64 of \(kind.what), as the Play Console shows it"
        let limit = ClassicTokenKeys.fileBytesMax
        let bytes = files.secret(file, limit: limit, use: use, kind.standIn)
        guard let bytes else { return nil }
        if let key = ClassicTokenKeys.key(ofFile: bytes), isKey(key) { return key }
        reader.log.error(file, found: "another text in \(files.path(of: file))", use: use)
        return nil
    }
}
