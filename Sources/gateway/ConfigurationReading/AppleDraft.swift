import Cryptography
import KeyStore
import OutboundCalls

/// The section `apple` in the file's words.
struct AppleDraft {
    /// One of the keys.
    struct Key {
        let team: Located<String>?
        let keyID: Located<String>?
        let file: Located<String>?
    }

    private static let keys = [
        "keys", "authorization", "hosts", "roots", "proxy", "timeout", "concurrent", "queue",
        "rate", "receipts",
    ]

    private(set) var settings = AppleSettings()
    private static let rows: [SettingRow<AppleSettings>] = [
        SettingRow("timeout", .time(\.timeout, .milliseconds(100) ... .seconds(300))),
        SettingRow("concurrent", .count(\.concurrent, 1...64)),
        SettingRow("queue", .count(\.queue, 1...100_000)),
        SettingRow("rate", .perSecond(\.perSecond, of: "calls to one host in a second", max: 1000)),
    ]

    private var credentials: [Key] = []
    private var roots: Located<String>?

    init(_ node: SourceNode?, log: ProblemLog) {
        guard let node, let reader = MappingReader(node, "apple", keys: Self.keys, log: log) else {
            return
        }
        let nodes = reader.list("keys", of: "{ team: …, key_id: …, file: AuthKey_….p8 }") ?? []
        credentials = nodes.compactMap { Self.key($0, $1, log) }
        if let word = reader.word("authorization", AppleSettings.Authorization.self) {
            settings.authorization = word.value
        }
        readHosts(reader)
        roots = reader.value("roots", use: "a PEM file's path") { $0.isEmpty ? nil : $0 }
        settings.proxy = OutboundDraft.proxy(reader)
        for row in Self.rows { row.read(reader, into: &settings) }
        settings.receipts = RenewalSettings(reader.node("receipts"), log: log)
    }

    private static func key(_ node: SourceNode, _ keyPath: String, _ log: ProblemLog) -> Key? {
        let keys = ["team", "key_id", "file"]
        guard let reader = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        reader.require("team", use: "team: the team's id, such as ABCDE12345")
        reader.require("key_id", use: "key_id: the key's id, such as ABC123DEFG")
        reader.require("file", use: "file: AuthKey_….p8, as downloaded from developer.apple.com")
        let id = { (text: String) in AppleCredential.isID(text) ? text : nil }
        let use = "ten capital letters and digits"
        return Key(
            team: reader.value("team", use: use, id),
            keyID: reader.value("key_id", use: use, id),
            file: reader.value("file", use: "a .p8 file's path") { $0.isEmpty ? nil : $0 }
        )
    }

    private mutating func readHosts(_ reader: MappingReader) {
        let names = AppleHost.all.map(\.key)
        guard let inner = reader.inner("hosts", keys: names) else { return }
        for host in AppleHost.all {
            let address = inner.value(host.key, use: "https://host or https://host:port") { text in
                OutboundDraft.isAddress(text, scheme: "https://", needsPort: false) ? text : nil
            }
            guard let address else { continue }
            settings.hosts[host] = address.value
            let other = AppleHost.all.first {
                $0.address == address.value && $0.environment != host.environment
            }
            guard let other else { continue }
            reader.log.error(
                address,
                found: "\(address.value), which is Apple's for \(other.environment.rawValue)",
                use: "a host for \(host.environment.rawValue); Apple answers 400 otherwise"
            )
        }
    }

    // MARK: Files

    /// The settings, with the files read: then memory has all that a call needs.
    func validated(_ files: NamedFiles) -> AppleSettings {
        var valid = settings
        var seen: [String: Problem.Place] = [:]
        for key in credentials {
            if let team = key.team {
                files.log.claim(team, in: &seen, use: "one key for each team")
            }
            guard let credential = credential(key, files) else { continue }
            valid.credentials.append(credential)
        }
        if let roots { valid.roots = files.certificates(roots) }
        return valid
    }

    private func credential(_ key: Key, _ files: NamedFiles) -> AppleCredential? {
        guard let team = key.team, let keyID = key.keyID, let file = key.file else { return nil }
        let use = "a readable .p8 file; relative paths count from the configuration's folder"
        let limit = AppleCredential.fileBytesMax
        guard let bytes = files.secret(file, limit: limit, use: use) else { return nil }
        do throws(AppleKeyFault) {
            return try AppleCredential(
                teamID: team.value,
                keyID: keyID.value,
                pem: String(decoding: bytes, as: UTF8.self)
            )
        } catch {
            let path = files.path(of: file)
            files.log.error(file, found: "\(error.found) (\(path))", use: error.use)
            return nil
        }
    }
}

extension RenewalSettings {
    /// The section `apple.receipts`.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["renew", "rate", "every"]
        guard let node, let reader = MappingReader(node, "apple.receipts", keys: keys, log: log)
        else { return }
        if let flag = reader.flag("renew") { renews = flag.value }
        let rate = reader.rate("rate", of: "calls a second", max: 1_000)
        if let rate { perSecond = rate.value }
        let day = Duration.seconds(86_400)
        if let time = reader.duration("every", in: day...(day * 60)) { every = time.value }
    }
}
