import Cryptography
import KeyStore
import OutboundCalls
import Rules
import Signatures

/// What the settings of calls to any other party share.
enum OutboundDraft {
    /// Reads `proxy`: a proxy that supports CONNECT.
    static func proxy(_ reader: MappingReader) -> String? {
        reader.value("proxy", use: "http://host:port") { text in
            isAddress(text, scheme: "http://", needsPort: true) ? text : nil
        }?.value
    }

    /// Reads `min_interval` and `max_interval` of what is fetched again and again: 1s…1d, 1s…7d.
    /// They are left as they are where the file does not say them.
    static func readIntervals(
        _ reader: MappingReader,
        least: inout Duration,
        most: inout Duration
    ) {
        let (second, day) = (Duration.seconds(1), Duration.seconds(86_400))
        let statedLeast = reader.duration("min_interval", in: second...day)
        let statedMost = reader.duration("max_interval", in: second...(day * 7))
        if let statedLeast { least = statedLeast.value }
        if let statedMost { most = statedMost.value }
        guard least > most, let stated = statedMost ?? statedLeast else { return }
        reader.log.error(
            stated,
            found: "a shortest time that is longer than the longest",
            use: "min_interval: at most max_interval, which is \(most.settingText)"
        )
    }

    /// The longest address, in bytes.
    private static let urlBytesMax = 1_024

    /// An address of HTTPS, without a fragment; `nil` for any other text.
    static func url(_ text: String) -> String? {
        let scheme = "https://"
        guard text.hasPrefix(scheme), text.utf8.count <= urlBytesMax,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") })
        else { return nil }
        let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }
        let address = scheme + String(host)
        return isAddress(address, scheme: scheme, needsPort: false) ? text : nil
    }

    /// Whether a text is a scheme, a host and perhaps a port.
    static func isAddress(_ text: String, scheme: String, needsPort: Bool) -> Bool {
        guard text.hasPrefix(scheme) else { return false }
        let rest = String(text.dropFirst(scheme.count))
        if rest.hasPrefix("unix:") { return false }
        if ServerAddress(text: rest, allowsPortZero: false) != nil { return true }
        return !needsPort && ServerAddress(text: rest + ":443", allowsPortZero: false) != nil
    }
}

extension NamedFiles {
    /// Reads a file of authorities.
    func certificates(_ file: Located<String>) -> [UInt8]? {
        let path = path(of: file)
        let use = "a PEM file with the certificates of authorities"
        do {
            let bytes = try disk.contents(of: path, limit: X509Certificate.pemBytesMax)
            _ = try X509Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
            return bytes
        } catch let fault as FileFault {
            log.error(file, found: "\(fault.found) (\(path))", use: use)
        } catch {
            log.error(file, found: "no certificate in \(path)", use: use)
        }
        return nil
    }
}

extension TokenCallSettings {
    private static let rows: [SettingRow<Self>] = [
        SettingRow("timeout", .time(\.timeout, .milliseconds(100) ... .seconds(30))),
        SettingRow("concurrent", .count(\.concurrent, 1...64)),
        SettingRow("queue", .count(\.queue, 1...100_000)),
        SettingRow("rate", .perSecond(\.perSecond, of: "calls in a second", max: 1_000)),
    ]

    /// The limits of the calls about tokens.
    init(_ reader: MappingReader) {
        self.init()
        for row in Self.rows { row.read(reader, into: &self) }
    }
}

/// The section `google` in the file's words.
struct GoogleDraft {
    private(set) var settings = GoogleSettings()
    private let roots: Located<String>?

    init(_ node: SourceNode?, log: ProblemLog) {
        let keys = ["status_list", "roots", "proxy", "timeout"]
        guard let node, let reader = MappingReader(node, "google", keys: keys, log: log) else {
            roots = nil
            return
        }
        roots = reader.filePath("roots", use: "a PEM file's path")
        settings.proxy = OutboundDraft.proxy(reader)
        if let time = reader.duration("timeout", in: .milliseconds(100)...Duration.seconds(300)) {
            settings.timeout = time.value
        }
        readStatusList(reader)
    }

    private mutating func readStatusList(_ reader: MappingReader) {
        let keys = ["url", "min_interval", "max_interval"]
        guard let inner = reader.inner("status_list", keys: keys) else { return }
        if let url = inner.value("url", use: "https://host/path", OutboundDraft.url) {
            settings.statusListURL = url.value
        }
        OutboundDraft.readIntervals(
            inner,
            least: &settings.intervalMin,
            most: &settings.intervalMax
        )
    }

    /// The settings, with the file of the authorities read.
    func validated(_ files: NamedFiles) -> GoogleSettings {
        var valid = settings
        if let roots { valid.roots = files.certificates(roots) }
        return valid
    }
}

/// The calls to Google's servers. They are made only where an app is an Android app.
package struct GoogleSettings: Hashable, Sendable {
    /// `status_list.url`: the list of revoked attestation certificates. Default Google's.
    package var statusListURL = "https://android.googleapis.com/attestation/status"
    /// `status_list.min_interval`: the shortest time between two requests for it, whatever the
    /// answer says. Default 15m, 1s…1d.
    package var intervalMin = Duration.seconds(900)
    /// `status_list.max_interval`: the longest one. Default 6h, 1s…7d: a quarter of the default of
    /// an app's `status_max_age`, so that some requests may fail before enrolments are refused.
    package var intervalMax = Duration.seconds(21_600)
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    /// `proxy`: a proxy that supports CONNECT. Default none.
    package var proxy: String?
    /// `timeout`: of a call, from the name's look-up to the last byte. Default 30s, 100ms…5m.
    package var timeout = Duration.seconds(30)

    package init() {}
}

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
        roots = reader.filePath("roots", use: "a PEM file's path")
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
            file: reader.filePath("file", use: "a .p8 file's path")
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
