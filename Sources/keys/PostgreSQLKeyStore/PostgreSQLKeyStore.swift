// The keys in a database that several gateways share, through libpq: a journal for the gateway, and
// what the `keys` commands do.
//
// libpq is used as it is: it brings TLS, passwords from a file and the choice of the server that
// takes writes (`target_session_attrs`), and it is what PostgreSQL's own tools use. Several hosts
// are tried here, one after the other, and names are looked up here: libpq has no deadline for
// either (`DatabaseServers`, `NameLookUp`).
//
// A gateway has four connections: the writer's, on which all that waits goes out as one
// transaction in one round trip (libpq's pipeline mode); the reader's; one that waits for
// notifications; and one for the renewal of receipts. Each is made again when it was lost, with
// growing pauses. Nothing waits without a deadline.
//
// Who decides: the database. An event loop looks a key up in memory and verifies; then the use
// waits for the writer's next transaction, whose one statement compares counters, spends
// challenges, honours revocations and answers each use (`UseStatement`). So it does not matter
// which gateway a client comes to, what that gateway knows, or how late it is.
//
// What is promised, and by what:
//
// 1. No assertion is admitted twice: the row of its key is locked while its counter is compared and
//    raised, and a spent challenge is a row with a unique name.
// 2. A key answered 201 is in the database: the transaction was committed.
// 3. A revoked key is refused from the moment the command returned: each use looks at it.
// 4. A stored counter never goes down: all writes take the highest of both.
//
// `synchronous_commit` is the database's to say. Off, a crash of the database's server may lose the
// last transactions that were answered, and with them counters and spent challenges.
//
// Files: DatabaseServers, NameLookUp, DatabaseConnection, DatabaseLink, DatabaseRows and
// DatabaseValue speak to libpq; DatabaseHint says what to do about faults, and DatabaseCheckup
// looks for the doctor; DatabaseSchema and DatabaseMigration make the tables; UseStatement,
// CounterColumns, KeyColumns and ReceiptColumns are the SQL; PostgreSQLKeyJournal is the gateway's,
// PostgreSQLKeyArchive the commands'.
