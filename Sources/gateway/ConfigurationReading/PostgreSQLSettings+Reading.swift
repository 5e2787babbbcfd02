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
