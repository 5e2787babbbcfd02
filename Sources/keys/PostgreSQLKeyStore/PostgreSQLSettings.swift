/// How the database is reached.
package struct PostgreSQLSettings: Hashable, Sendable {
    /// As libpq reads it: `host=db1,db2 dbname=portcullis user=portcullis passfile=…`.
    package var address: String
    /// How long a connection may take. Default 5 s.
    package var connectTimeout = Duration.seconds(5)
    /// How long the database may take for what is asked at once. Default 2 s.
    package var statementTimeout = Duration.seconds(2)
    /// How many keys are kept in memory. Others are read when they are used. Default 1,000,000.
    package var keysCached = 1_000_000

    /// The longest time from the commit of a revocation until the key is refused also where the
    /// database is asked about nothing, as in a session. Default 3 s.
    package var revokedWithin = Duration.seconds(3)

    package init(address: String) { self.address = address }
}
