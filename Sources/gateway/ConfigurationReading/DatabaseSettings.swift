/// How the database is reached that several gateways share: `store.postgresql`.
package struct DatabaseSettings: Hashable, Sendable {
    static let keys = [
        "address", "connect_timeout", "statement_timeout", "keys_cached", "revoked_within",
    ]

    /// `address`, mandatory: what libpq takes, as `host=db.example.com dbname=portcullis`, without
    /// a password.
    package var address: String
    /// `connect_timeout`: how long a connection may take. Default 5 s, 100 ms…1 min.
    package var connectTimeout = Duration.seconds(5)
    /// `statement_timeout`: how long the database may take for what is asked at once. Default 2 s,
    /// 100 ms…1 min.
    package var statementTimeout = Duration.seconds(2)
    /// `keys_cached`: keys in memory; others are asked for. Default 1,000,000, 1,000…100,000,000.
    package var keysCached = 1_000_000

    /// `revoked_within`: the longest time from the commit of a revocation until no gateway admits a
    /// session of the key. A gateway that has not heard from the database for so long admits none.
    /// Default 3 s, 2 s…1 min: changes are read every second.
    package var revokedWithin = Duration.seconds(3)

    package init(address: String) { self.address = address }

    init?(_ node: SourceNode, log: ProblemLog) {
        guard let reader = MappingReader(node, "store.postgresql", keys: Self.keys, log: log)
        else { return nil }
        let use = "host=db.example.com dbname=portcullis user=portcullis sslmode=verify-full"
        reader.require("address", use: "address: \(use)")
        let address = reader.value("address", use: use) { $0.isEmpty ? nil : $0 }
        let times = Duration.milliseconds(100)...Duration.seconds(60)
        let connectTime = reader.duration("connect_timeout", in: times)
        let statementTime = reader.duration("statement_timeout", in: times)
        let count = reader.integer("keys_cached", in: 1_000...100_000_000)
        let bounds = Duration.seconds(2)...Duration.seconds(60)
        let revokedTime = reader.duration("revoked_within", in: bounds)
        guard let address else { return nil }
        self.init(address: address.value)
        Self.examine(address, log)
        if let connectTime { connectTimeout = connectTime.value }
        if let statementTime { statementTimeout = statementTime.value }
        if let count { keysCached = count.value }
        if let revokedTime { revokedWithin = revokedTime.value }
    }

    /// A configuration is read by many, and goes into backups and repositories.
    private static func examine(_ address: Located<String>, _ log: ProblemLog) {
        guard let read = DatabaseAddress(address.value) else {
            return log.error(
                address.place,
                address.keyPath,
                found: "what libpq can't read",
                use: "host=db.example.com dbname=portcullis user=portcullis, quotes as in 'a b'"
            )
        }
        for secret in read.secrets {
            log.error(
                address.place,
                address.keyPath,
                found: "a password (\(secret))",
                use: secret == "password"
                    ? "passfile=/etc/portcullis/pgpass, a file that the gateway alone may read"
                    : "sslkey= with a key that has no password, which the gateway alone may read"
            )
        }
        guard read.isRemote, !read.isVerifying else { return }
        log.warning(
            address.place,
            address.keyPath,
            found: "no sslmode=verify-full: whoever is in between can play the database",
            use: "sslmode=verify-full sslrootcert=FILE, or host=/run/postgresql on this machine"
        )
    }
}
