internal import KeyStore

/// The tables of the database.
///
/// Only the fill factor is specific to PostgreSQL; CockroachDB and YugabyteDB accept and ignore it.
/// Numbers are `bigint`, identities are standard SQL, and there is no trigger, function, own
/// sequence or advisory lock.
enum DatabaseSchema {
    /// `state.version`. It changes with the tables, when another program can't use them.
    static let version: Int64 = 1

    /// The statements that make the tables.
    static let creation: [String] = keys + uses + fleet + guards + questions + limits

    /// The tables that a gateway and the `keys` commands write to.
    static let tables = [
        "apps", "chains", "challenge_floor", "drains", "fleet_answers", "fleet_limits",
        "fleet_questions", "gateways", "guard_counts", "key_changes", "keys", "leases", "receipts",
        "renewals", "rollout_changes", "rollout_state", "secrets", "shared_secrets",
        "spent_challenges", "state",
    ]

    // A use changes no column of an index, and a page has room for some new rows beside the old
    // ones. So PostgreSQL writes only the row (heap-only tuples).
    private static let keys = TableSchema.creation(
        in: .postgreSQL,
        keysEnd: " WITH (fillfactor = 80)",
        renewalsMore: """
            ,
                leased_by bigint NOT NULL DEFAULT 0,
                leased_until bigint NOT NULL DEFAULT 0
            """
    )

    private static let uses = [
        // Work that one gateway does for all: until when, by the clock of the database.
        """
        CREATE TABLE leases (
            name text PRIMARY KEY,
            holder bigint NOT NULL,
            ends_at bigint NOT NULL
        )
        """,
        """
        CREATE TABLE spent_challenges (
            purpose bigint NOT NULL,
            epoch bigint NOT NULL,
            number bigint NOT NULL,
            expires_at bigint NOT NULL,
            PRIMARY KEY (epoch, number, purpose)
        )
        """,
        "CREATE INDEX spent_challenges_by_expiry ON spent_challenges (expires_at)",
        // Uses of challenges whose expiry is at or below `expiry` are refused. Those at or below
        // `removable` may be removed: no statement that has not seen them refused can still run.
        """
        CREATE TABLE challenge_floor (
            id bigint PRIMARY KEY CHECK (id = 1),
            expiry bigint NOT NULL,
            removable bigint NOT NULL,
            raised_at bigint NOT NULL
        )
        """,
        "INSERT INTO challenge_floor VALUES (1, 0, 0, 0)",
        """
        CREATE TABLE shared_secrets (
            number bigint PRIMARY KEY,
            secret bytea NOT NULL CHECK (length(secret) = 32),
            used_from bigint NOT NULL
        )
        """,
        """
        CREATE TABLE state (
            id bigint PRIMARY KEY CHECK (id = 1),
            revision bigint NOT NULL,
            version bigint NOT NULL
        )
        """,
        "INSERT INTO state VALUES (1, 0, \(version))",
    ]

    // rollout_state: the orders in force, as JSON, with their version. rollout_changes: who has
    // changed them, when and why; a change without a rule is about all rules. ticket: by it a
    // writer that has lost its connection finds out that its change was made. gateways: one row for
    // each process, written each second; seen_at by the clock of the database. drains: by the
    // gateway's name, so that a drained gateway stays so over a restart.
    private static let fleet = [
        """
        CREATE TABLE rollout_state (
            id bigint PRIMARY KEY CHECK (id = 1),
            version bigint NOT NULL,
            orders text NOT NULL
        )
        """,
        "INSERT INTO rollout_state VALUES (1, 0, '')",
        """
        CREATE TABLE rollout_changes (
            version bigint PRIMARY KEY,
            at bigint NOT NULL,
            actor text NOT NULL,
            why text NOT NULL,
            rule text,
            changed_from text NOT NULL,
            changed_to text NOT NULL,
            gateway text NOT NULL,
            ticket bytea NOT NULL
        )
        """,
        """
        CREATE TABLE gateways (
            instance bigint PRIMARY KEY,
            name text NOT NULL,
            program text NOT NULL,
            address text NOT NULL,
            started_at bigint NOT NULL,
            seen_at bigint NOT NULL,
            order_version bigint NOT NULL,
            pending bigint NOT NULL,
            rules_digest bytea NOT NULL,
            standing text NOT NULL,
            clients bigint NOT NULL
        )
        """,
        """
        CREATE TABLE drains (
            name text PRIMARY KEY,
            at bigint NOT NULL,
            actor text NOT NULL,
            why text NOT NULL
        )
        """,
    ]

    // What each process has counted for the guard of a rule in a slot of time: the registers of
    // three sketches. since: the version of the orders with which the counting began. span: the
    // length of the guard's window, in seconds. ends_at: when the row may be removed.
    private static let guards = [
        """
        CREATE TABLE guard_counts (
            rule text NOT NULL,
            slot bigint NOT NULL,
            instance bigint NOT NULL,
            span bigint NOT NULL,
            since bigint NOT NULL,
            written_at bigint NOT NULL,
            ends_at bigint NOT NULL,
            passed bytea NOT NULL CHECK (length(passed) <= 1024),
            refused bytea NOT NULL CHECK (length(refused) <= 1024),
            broken bytea NOT NULL CHECK (length(broken) <= 1024),
            PRIMARY KEY (rule, slot, instance)
        )
        """,
        "CREATE INDEX guard_counts_by_writing ON guard_counts (written_at)",
    ]

    // What an operator asks of all gateways, and what each has answered last. kind: what it is
    // about. question: the last one that it answers. ends_at: when the row may be removed.
    private static let questions = [
        """
        CREATE TABLE fleet_questions (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            asker bigint NOT NULL,
            about text NOT NULL,
            ends_at bigint NOT NULL
        )
        """,
        """
        CREATE TABLE fleet_answers (
            kind text NOT NULL,
            instance bigint NOT NULL,
            question bigint NOT NULL,
            written_at bigint NOT NULL,
            ends_at bigint NOT NULL,
            answer bytea NOT NULL CHECK (length(answer) <= 524288),
            PRIMARY KEY (kind, instance)
        )
        """,
    ]

    // What all gateways have taken of a limit: when its bucket is full, in microseconds since 1970
    // by the clock of the database. subject: a hash of an address or of an attesting key, under a
    // key that the gateways share.
    private static let limits = [
        """
        CREATE TABLE fleet_limits (
            kind bigint NOT NULL,
            subject bigint NOT NULL,
            full_at bigint NOT NULL,
            written_at bigint NOT NULL,
            PRIMARY KEY (kind, subject)
        )
        """,
        "CREATE INDEX fleet_limits_by_writing ON fleet_limits (written_at)",
        "CREATE INDEX fleet_limits_by_end ON fleet_limits (full_at)",
    ]
}
