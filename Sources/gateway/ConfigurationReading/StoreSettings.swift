import Encodings
package import KeyStore
package import Rules

/// `store`: where keys are kept, and for how long.
package struct StoreSettings: Hashable, Sendable, Declared {
    /// The database's file.
    var file: String?
    /// Whether a start without the database's file is refused.
    package var mustExist = false
    var database: PostgreSQLSettings?
    /// Keys that were not used for this time are deleted.
    package var expireUnused: KeyAge?

    package var place: StorePlace {
        if let file { return .sqlite(file: file) }
        return database.map { .postgresql($0) } ?? .none
    }

    package static let keys = Keys<Self> {
        Key("sqlite", orNone: \.file, file).means("The database's file, on a local disk.")
            .needs(.restart)
        Key("must_exist", \.mustExist, .flag)
            .means("Whether a start that finds no database is refused. Otherwise it makes one.")
        Key("postgresql", orNone: \.database, database)
            .means("In the place of sqlite: a database that several gateways share.")
            .needs(.restart)
        Key("expire_unused", \.expireUnused, expiry)
            .means("Keys that were enrolled and last used longer ago are deleted.")
    }.checked { reader, store in
        let use = "sqlite: a file's path, or postgresql: { address: … }"
        if !reader.has("sqlite"), !reader.has("postgresql") {
            reader.log.error(reader, found: "neither of them", use: use)
        }
        if reader.has("sqlite"), reader.has("postgresql") {
            reader.log.error(reader.place(of: "postgresql"), "store", found: "both", use: use)
        }
        if store.mustExist, store.file == nil {
            reader.error("must_exist", found: "it without sqlite", use: "sqlite")
        }
    }

    private static let file = ValueForm<String>(
        { reader, key in
            reader.takingVariables.value(key, use: "a file's path") { text in
                let isFile = !text.isEmpty && !text.hasSuffix("/")
                return isFile ? FilePath.joined(reader.log.folder, text) : nil
            }
        },
        text: { $0 }
    )

    private static let database = ValueForm<PostgreSQLSettings>.declared { reader, key in
        guard let node = reader.node(key) else { return nil }
        return PostgreSQLSettings(node, log: reader.log).map { reader.located(key, $0) }
    }

    private static let expiry = ValueForm<KeyAge?>(
        { reader, key in
            reader.value(key, use: "off | 30d…3650d", words: ["off"]) { (text) -> KeyAge?? in
                text == "off" ? .some(nil) : KeyAge(text).map(Optional.some)
            }
        },
        text: { $0.map { Duration.seconds($0.seconds).settingText } ?? "off" }
    )
}

/// The time for which an unused key is kept: whole days.
package struct KeyAge: Hashable, Sendable {
    /// Long enough for a device that was in a drawer, and to notice a mistake.
    package static let range = Duration.seconds(30 * 86_400)...Duration.seconds(3_650 * 86_400)
    package static let allowed = "use 30d…3650d"

    package let seconds: Int64

    package init?(_ text: String) {
        guard let duration = Duration(setting: text), Self.range.contains(duration) else {
            return nil
        }
        seconds = duration.components.seconds
    }
}

/// The store of keys: `store`.
package enum StorePlace: Hashable, Sendable {
    /// No store: nothing is verified, so there is nothing to keep.
    case none
    /// `store.sqlite`: the database's file.
    case sqlite(file: String)
    /// `store.postgresql`: a database that several gateways share.
    case postgresql(PostgreSQLSettings)

    /// The database's file; `nil` where the store has none.
    package var file: String? {
        if case .sqlite(let file) = self { file } else { nil }
    }

    /// For messages. It contains no secret.
    package var name: String {
        switch self {
        case .none: "memory"
        case .sqlite(let file): file
        case .postgresql(let database): database.address
        }
    }
}

/// The part of a configuration for commands about keys.
package struct KeySettings: Sendable {
    package let store: StorePlace
    package let apps: [AppPolicy]
}

/// Store and apps of a configuration, with the file's problems.
package struct LoadedStore: Sendable {
    /// `nil` when there is an error among the problems.
    package let settings: KeySettings?
    /// Errors and warnings, by file and line.
    package let problems: [Problem]
}

extension PostgreSQLSettings: Declared {
    private static let times = Duration.milliseconds(100)...Duration.seconds(60)
    private static let form =
        "host=db.example.com dbname=portcullis user=portcullis sslmode=verify-full"

    package static let keys = Keys<Self> {
        Key("address", \.address, .file(form)).means("What libpq takes, without a password.")
            .mandatory("address: \(form)")
        Key("connect_timeout", \.connectTimeout, .time(times))
            .means("How long a connection may take.")
        Key("statement_timeout", \.statementTimeout, .time(times))
            .means("How long the database may take for what is asked at once.")
        Key("keys_cached", \.keysCached, .count(1_000...100_000_000))
            .means("Keys in memory, some 142 bytes each. Others are read when they are used.")
        Key("revoked_within", \.revokedWithin, .time(.seconds(2) ... .seconds(60)))
            .means("From a revocation until no gateway admits a session of the key.")
            .because("changes are read every second")
        Key("gateway", \.gateway, name)
            .means("The name of this gateway for operators. Without it, the host's.")
    }

    private static let name = ValueForm<String>.name(
        "a name of 1…64 letters, digits, -, _ and ., and no - first"
    ) { GatewayName.isValid($0) ? $0 : nil }

    /// Reads `store.postgresql`; `nil` without an address.
    init?(_ node: SourceNode, log: ProblemLog) {
        let stated = Stated(node, at: "store.postgresql", over: Self(address: ""), log)
        guard let stated, let address = stated.located("address", \.address) else { return nil }
        self = stated.value
        Self.examine(address, log)
    }

    /// A configuration is read by many, and goes into backups and repositories.
    private static func examine(_ address: Located<String>, _ log: ProblemLog) {
        guard !log.assumes(valueAt: address.keyPath) else { return }
        guard let read = DatabaseAddress(address.value) else {
            return log.error(
                address,
                found: "what libpq can't read",
                use: "host=db.example.com dbname=portcullis user=portcullis, quotes as in 'a b'"
            )
        }
        for secret in read.secrets {
            log.error(
                address,
                found: "a password (\(secret))",
                use: secret == "password"
                    ? "passfile=/etc/portcullis/pgpass, a file that the gateway alone may read"
                    : "sslkey= with a key that has no password, which the gateway alone may read"
            )
        }
        guard read.isRemote, !read.isVerifying else { return }
        log.warning(
            address,
            found: "no sslmode=verify-full: whoever is in between can play the database",
            use: "sslmode=verify-full sslrootcert=FILE, or host=/run/postgresql on this machine"
        )
    }
}

/// The contents of a connection string, read as libpq does (PostgreSQL manual, section 34.1.1): in
/// both forms, words with `=` and a URI. Of a repeated word the last one counts.
package struct DatabaseAddress: Hashable, Sendable {
    /// The longest string that is accepted: libpq itself has no limit.
    static let lengthMax = 4_096

    /// The settings by their names.
    package let settings: [String: String]

    /// - Returns: `nil` for a string that libpq can't read.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.lengthMax, !text.utf8.contains(0) else { return nil }
        for scheme in ["postgresql://", "postgres://"] where text.hasPrefix(scheme) {
            guard let settings = Self.uri(text.utf8.dropFirst(scheme.utf8.count)) else {
                return nil
            }
            self.settings = settings
            return
        }
        guard let settings = Self.words(Array(text.utf8)) else { return nil }
        self.settings = settings
    }

    /// Its parts that only the database and the gateway should know.
    var secrets: [String] {
        ["password", "sslpassword"].filter { settings[$0, default: ""] != "" }
    }

    /// The named servers, `hostaddr` before `host`. Empty where the name comes from elsewhere
    /// (`service`, PGHOST), or is libpq's own socket.
    private var servers: [String] {
        let names = settings["hostaddr"] ?? settings["host"] ?? ""
        return names.isEmpty ? [] : Self.parts(names[...], separator: ",").map { String($0) }
    }

    /// Whether a server may be on another machine.
    var isRemote: Bool {
        guard !servers.isEmpty else { return settings["service"] != nil }
        return servers.contains { name in
            // A path, or, with `@`, a name without a file: sockets of this machine. So is an empty
            // name.
            if name.isEmpty || name.hasPrefix("/") || name.hasPrefix("@") { return false }
            return name != "localhost" && name != "::1" && !Self.isLoopback(name)
        }
    }

    private static func isLoopback(_ name: String) -> Bool {
        name.hasPrefix("127.") && name.allSatisfy { $0.isNumber || $0 == "." }
    }

    /// Whether the server's certificate and its name are verified. That is the gateway's default.
    var isVerifying: Bool { settings["sslmode", default: "verify-full"] == "verify-full" }

    // MARK: Words

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || 9...13 ~= byte }

    private static func words(_ text: [UInt8]) -> [String: String]? {
        var settings: [String: String] = [:]
        var rest = text[...].drop(while: isSpace)
        while !rest.isEmpty {
            let name = rest.prefix { $0 != UInt8(ascii: "=") && !isSpace($0) }
            rest = rest.dropFirst(name.count).drop(while: isSpace)
            guard !name.isEmpty, rest.popFirst() == UInt8(ascii: "=") else { return nil }
            rest = rest.drop(while: isSpace)
            guard let value = value(&rest) else { return nil }
            settings[String(decoding: name, as: UTF8.self)] = value
            rest = rest.drop(while: isSpace)
        }
        return settings
    }

    /// A value, with or without quotes. A backslash escapes the next byte.
    private static func value(_ rest: inout ArraySlice<UInt8>) -> String? {
        var value: [UInt8] = []
        let quote = UInt8(ascii: "'")
        let isQuoted = rest.first == quote
        if isQuoted { rest.removeFirst() }
        while let byte = rest.first, isQuoted ? byte != quote : !isSpace(byte) {
            rest.removeFirst()
            guard byte == UInt8(ascii: "\\") else {
                value.append(byte)
                continue
            }
            if let next = rest.popFirst() { value.append(next) }
        }
        // The final quote.
        if isQuoted, rest.popFirst() == nil { return nil }
        return String(decoding: value, as: UTF8.self)
    }

    // MARK: URIs

    private static func parts(_ text: Substring, separator: Character) -> [Substring] {
        text.split(separator: separator, omittingEmptySubsequences: false)
    }

    /// - text: the part after `postgresql://`.
    private static func uri(_ text: Substring.UTF8View) -> [String: String]? {
        var settings: [String: String] = [:]
        var rest = Substring(text)
        // A password may have a `?` in it, so the user comes first.
        let head = rest.prefix { $0 != "/" }
        if let at = head.firstIndex(of: "@") {
            let user = parts(head[..<at], separator: ":")
            settings["user"] = user.first.map { String($0) }
            if user.count > 1 { settings["password"] = user.dropFirst().joined(separator: ":") }
            rest = rest[rest.index(after: at)...]
        }
        let hosts = rest.prefix { $0 != "/" && $0 != "?" }
        guard let names = serverNames(hosts) else { return nil }
        if !names.isEmpty { settings["host"] = names }
        let path = rest.dropFirst(hosts.count)
        let name = path.prefix { $0 != "?" }.dropFirst()
        if !name.isEmpty { settings["dbname"] = String(name) }
        let query = path.drop { $0 != "?" }.dropFirst()
        for pair in query.isEmpty ? [] : parts(query, separator: "&") {
            let halves = parts(pair, separator: "=")
            guard halves.count == 2 else { return nil }
            settings[String(halves[0])] = String(halves[1])
        }
        var decoded: [String: String] = [:]
        for (name, value) in settings {
            guard let name = unescaped(name), let value = unescaped(value) else { return nil }
            decoded[name] = value
        }
        // JDBC's form.
        if decoded.removeValue(forKey: "ssl") == "true" { decoded["sslmode"] = "require" }
        return decoded
    }

    /// The names, without ports.
    private static func serverNames(_ text: Substring) -> String? {
        var names: [Substring] = []
        for server in parts(text, separator: ",") {
            guard server.hasPrefix("[") else {
                names.append(server.prefix { $0 != ":" })
                continue
            }
            guard let end = server.firstIndex(of: "]") else { return nil }
            names.append(server[..<end].dropFirst())
        }
        return names.joined(separator: ",")
    }

    private static func unescaped(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard let value = Hex.decode(digits)?.first, value != 0 else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
