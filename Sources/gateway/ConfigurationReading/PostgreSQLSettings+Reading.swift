import Encodings
import KeyStore

extension PostgreSQLSettings {
    private static let times = Duration.milliseconds(100)...Duration.seconds(60)

    private static let rows: [SettingRow<Self>] = [
        SettingRow("connect_timeout", .time(\.connectTimeout, times)),
        SettingRow("statement_timeout", .time(\.statementTimeout, times)),
        SettingRow("keys_cached", .count(\.keysCached, 1_000...100_000_000)),
        SettingRow("revoked_within", .time(\.revokedWithin, .seconds(2) ... .seconds(60))),
    ]

    /// Reads `store.postgresql`; `nil` without an address.
    init?(_ node: SourceNode, log: ProblemLog) {
        self.init(address: "")
        let reader = SettingRow.read(
            Self.rows,
            after: ["address"],
            before: ["gateway"],
            of: node,
            "store.postgresql",
            into: &self,
            log: log
        )
        guard let reader else { return nil }
        let use = "host=db.example.com dbname=portcullis user=portcullis sslmode=verify-full"
        reader.require("address", use: "address: \(use)")
        let address = reader.value("address", use: use) { $0.isEmpty ? nil : $0 }
        let name = reader.value("gateway", use: "a name of 1…64 letters, digits, -, _ and .") {
            Self.isName($0) ? $0 : nil
        }
        gateway = name?.value ?? ""
        guard let address else { return nil }
        self.address = address.value
        Self.examine(address, log)
    }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isAlphanumeric || "-_.".utf8.contains($0) }
    }

    /// A configuration is read by many, and goes into backups and repositories.
    private static func examine(_ address: Located<String>, _ log: ProblemLog) {
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
