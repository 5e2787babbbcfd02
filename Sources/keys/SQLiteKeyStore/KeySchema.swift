internal import KeyStore

/// The tables of the database.
enum KeySchema {
    /// "PCLS": marks our databases (SQLite, `PRAGMA application_id`).
    static let applicationID = 0x5043_4C53
    /// `PRAGMA user_version`. It changes with the tables, when another program can't use them.
    static let version = 1

    // The counters of `keys` may be older than those of `counter_log`: see CounterLog. A deleted
    // key keeps its row, since a removed row would give its number to another key, which would then
    // get the counters in the log.
    //
    // state: store: 32 hexadecimal digits that no other store has. generation: see Generation; 0
    // until the database was used with a generation file beside it. anchored_after: see
    // CounterAnchors.
    //
    // spent_tokens: tokens of other issuers that are good once. digest: SHA-256 over what names the
    // token. ends_at: when no gateway accepts it any more.
    static let creation = """
        \(TableSchema.creation(in: .sqlite).joined(separator: ";\n"));
        CREATE INDEX keys_erased ON keys (erased_under) WHERE erased_under IS NOT NULL;
        CREATE TABLE counter_log (
            id INTEGER PRIMARY KEY,
            entries BLOB NOT NULL
        ) STRICT;
        CREATE TABLE state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            revision INTEGER NOT NULL,
            store TEXT NOT NULL,
            generation INTEGER NOT NULL,
            anchored_after INTEGER NOT NULL
        ) STRICT;
        INSERT INTO state VALUES (1, 0, lower(hex(randomblob(16))), 0, 0);
        CREATE TABLE spent_tokens (
            digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
            ends_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX spent_tokens_by_end ON spent_tokens (ends_at);
        PRAGMA application_id = \(applicationID);
        PRAGMA user_version = \(version);
        """

    /// Raises a key's counter and window to the given ones, or leaves them where they are ahead:
    /// the highest of both, and the union of both bitmaps. See `CounterState.merge`; SQLite's
    /// shifts by 64 and more give 0 too.
    ///
    /// - Parameters: the names of the parameters for counter and window.
    static func merge(counter: String, window: String) -> String {
        """
        counter_window = CASE
            WHEN \(counter) > counter THEN \(window)
                | (counter_window << (\(counter) - counter))
                | (1 << (\(counter) - counter - 1))
            WHEN \(counter) < counter THEN counter_window
                | (\(window) << (counter - \(counter)))
                | (1 << (counter - \(counter) - 1))
            ELSE counter_window | \(window) END,
        counter = max(counter, \(counter))
        """
    }
}
