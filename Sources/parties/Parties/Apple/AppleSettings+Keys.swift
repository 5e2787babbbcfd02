import KeyStore
import Rules
package import SettingsReading

/// The file of a private key for Apple's services: an element of `apple.keys`.
private struct AppleKeyFile: Declared {
    var team = ""
    var keyID = ""
    var file = ""

    package static let keys = Keys<Self> {
        Key("team", \.team, id).means("The team whose apps the key is for. One key for each.")
            .mandatory("team: the team's id, such as ABCDE12345")
        Key("key_id", \.keyID, id).means("The key's id.")
            .mandatory("key_id: the key's id, such as ABC123DEFG")
        Key("file", \.file, .file("a .p8 file's path"))
            .means("The key. Only its owner and group may read it. A reload reads it again.")
            .mandatory("file: AuthKey_….p8, as downloaded from developer.apple.com")
    }

    private static let id = ValueForm<String>.name("ten capital letters and digits") { text in
        AppleCredential.isID(text) ? text : nil
    }

    static func all(_ reader: MappingReader) -> [Stated<AppleKeyFile>] {
        let nodes = reader.list("keys", of: "{ team: …, key_id: …, file: AuthKey_….p8 }") ?? []
        return nodes.compactMap { Stated($0, at: $1, over: AppleKeyFile(), reader.log) }
    }
}

extension AppleSettings: Declared {
    package static let keys = Keys<Self> {
        Key("keys").means("The keys for Apple's services, one for each team.")
        Key("authorization", \.authorization, .word)
            .means("Whether a token stands alone in calls about receipts, or behind Bearer.")
            .because("as in Apple's example")
        Key("hosts", later: \.hosts, .whole).means("Addresses to be asked instead of Apple's.")
        OutboundKeys.reaching(by: \.proxy)
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(300)))
            .means("For a call, waiting for its turn included.")
        Key("concurrent", \.concurrent, .count(1...64)).means("Calls to one host at once.")
        Key("queue", \.queue, .count(1...100_000))
            .means("Calls that wait for one host. A further one is not made.")
        Key("rate", \.perSecond, .perSecond(of: "calls to one host in a second", max: 1000))
            .means("Calls to one host in a second.")
        Key("receipts", \.receipts, .mapping).means("The renewal of receipts.")
    }.checked { reader, settings in
        _ = AppleKeyFile.all(reader)
        settings.readHosts(reader)
    }

    private mutating func readHosts(_ reader: MappingReader) {
        let keys = Keys<Self> {
            AppleHost.all.map { Key($0.key).means("Asked in the place of Apple's host.") }
        }
        guard let inner = reader.inner("hosts", keys) else { return }
        for host in AppleHost.all {
            let address = inner.takingVariables.value(
                host.key,
                use: "https://host or https://host:port"
            ) { text in
                OutboundKeys.isAddress(text, scheme: "https://", needsPort: false) ? text : nil
            }
            guard let address else { continue }
            hosts[host] = address.value
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
}

extension Stated<AppleSettings> {
    /// The settings, with the files read: then memory has all that a call needs.
    package func validated(_ files: NamedFiles) -> AppleSettings {
        var valid = value
        var seen: [String: Problem.Place] = [:]
        for key in AppleKeyFile.all(reader) {
            if let team = key.located("team", \.team) {
                files.log.claim(team, in: &seen, use: "one key for each team")
            }
            guard let credential = credential(key, files) else { continue }
            valid.credentials.append(credential)
        }
        valid.roots = files.roots(reader)
        return valid
    }

    private func credential(_ key: Stated<AppleKeyFile>, _ files: NamedFiles) -> AppleCredential? {
        guard let team = key.located("team", \.team), let keyID = key.located("key_id", \.keyID),
            let file = key.located("file", \.file)
        else { return nil }
        let use = "a readable .p8 file; relative paths count from the configuration's folder"
        let limit = AppleCredential.fileBytesMax
        guard let bytes = files.secret(file, limit: limit, use: use, .privateKey) else {
            return nil
        }
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

extension RenewalSettings: Declared {
    package static let keys = Keys<Self> {
        Key("renew", \.renews, .flag).means("Whether receipts are renewed.")
        Key("rate", \.perSecond, .perSecond(of: "calls a second", max: 1_000))
            .means("Calls a second at most.")
        Key("every", \.every, .time(.days(1) ... .days(60)))
            .means("How long a receipt is left alone after it was renewed.")
            .because("Apple gives no newer one within a day, and takes none after 90 days")
    }
}
