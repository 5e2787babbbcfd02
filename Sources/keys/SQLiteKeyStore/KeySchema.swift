/// The tables of the database.
enum KeySchema {
    /// "PCLS": marks our databases (SQLite, `PRAGMA application_id`).
    static let applicationID = 0x5043_4C53
    /// `PRAGMA user_version`. It changes with the tables, when another program can't use them.
    static let version = 1

    // apps: that of erased keys has no name. key_id: 32 bytes. public_key: X and Y, 64 bytes.
    // counter_window: bit i is set when the counter i + 1 below the highest was used. Times:
    // seconds since 1970. revision: 0, or the change by a command that the gateway must read. The
    // counters of `keys` may be older than those of `counter_log`: see CounterLog. context: the
    // app's context from the enrolment. deleted_at: a deleted key keeps its row, without context,
    // receipt and times. A removed row would give its number to another key, which would then get
    // the counters in the log. platform: as in `DevicePlatform.number`. erased_under: the name of
    // the secret under which `key_id` is the mark of an erased key, see ErasureSecret; NULL for
    // other keys.
    //
    // renewals: the state of each receipt. created_at, not_before, expires_at: fields 12, 19 and
    // 21. metric_at: the creation of the receipt that had the metric. outcome: the result of the
    // last try to renew it. due_at: the time of the next try; NULL for never. The receipts are in
    // their own table, since they take a page each.
    //
    // chains: see ChainRecord; only of Android phones' keys, and in their own table, since no
    // request needs them.
    //
    // state: store: 32 hexadecimal digits that no other store has. generation: see Generation; 0
    // until the database was used with a generation file beside it. anchored_after: see
    // CounterAnchors.
    //
    // secrets: 32 bytes each, by their purpose.
    //
    // key_changes: the changes by commands, with author and reason; key_id: NULL for `keys` keys at
    // once.
    //
    // spent_tokens: tokens of other issuers that are good once. digest: SHA-256 over what names the
    // token. ends_at: when no gateway accepts it any more.
    static let creation = """
        CREATE TABLE apps (
            id INTEGER PRIMARY KEY,
            app_id TEXT NOT NULL UNIQUE
        ) STRICT;
        CREATE TABLE keys (
            id INTEGER PRIMARY KEY,
            key_id BLOB NOT NULL UNIQUE CHECK (length(key_id) = 32),
            public_key BLOB NOT NULL CHECK (length(public_key) = 64),
            app INTEGER NOT NULL REFERENCES apps (id),
            environment INTEGER NOT NULL CHECK (environment BETWEEN 1 AND 3),
            is_imported INTEGER NOT NULL CHECK (is_imported BETWEEN 0 AND 1),
            counter INTEGER NOT NULL CHECK (counter BETWEEN 0 AND 4294967295),
            counter_window INTEGER NOT NULL,
            enrolled_at INTEGER,
            last_used_at INTEGER,
            revoked_at INTEGER,
            revision INTEGER NOT NULL DEFAULT 0,
            context BLOB CHECK (length(context) BETWEEN 1 AND 256),
            deleted_at INTEGER,
            platform INTEGER NOT NULL DEFAULT 1 CHECK (platform BETWEEN 1 AND 2),
            erased_under TEXT
        ) STRICT;
        CREATE INDEX keys_by_revision ON keys (revision) WHERE revision > 0;
        CREATE INDEX keys_to_erase ON keys (id)
            WHERE deleted_at IS NOT NULL AND erased_under IS NULL;
        CREATE INDEX keys_erased ON keys (erased_under) WHERE erased_under IS NOT NULL;
        CREATE TABLE receipts (
            key INTEGER PRIMARY KEY REFERENCES keys (id),
            receipt BLOB NOT NULL
        ) STRICT;
        CREATE TABLE renewals (
            key INTEGER PRIMARY KEY REFERENCES keys (id),
            created_at INTEGER,
            not_before INTEGER,
            expires_at INTEGER,
            risk_metric INTEGER CHECK (risk_metric BETWEEN 0 AND 4294967295),
            metric_at INTEGER,
            tried_at INTEGER,
            outcome TEXT,
            due_at INTEGER,
            asked INTEGER NOT NULL DEFAULT 0 CHECK (asked BETWEEN 0 AND 1)
        ) STRICT;
        CREATE INDEX renewals_by_due ON renewals (due_at) WHERE due_at IS NOT NULL;
        CREATE INDEX renewals_asked ON renewals (asked) WHERE asked = 1;
        CREATE TABLE chains (
            key INTEGER PRIMARY KEY REFERENCES keys (id),
            serials TEXT NOT NULL,
            certificates_issued INTEGER CHECK (certificates_issued BETWEEN 0 AND 4294967295),
            listed TEXT
        ) STRICT;
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
        CREATE TABLE secrets (
            name TEXT PRIMARY KEY,
            secret BLOB NOT NULL CHECK (length(secret) = 32)
        ) STRICT;
        CREATE TABLE key_changes (
            id INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            actor TEXT NOT NULL,
            action TEXT NOT NULL,
            key_id BLOB CHECK (length(key_id) = 32),
            keys INTEGER NOT NULL,
            why TEXT
        ) STRICT;
        CREATE INDEX key_changes_by_key ON key_changes (key_id);
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
