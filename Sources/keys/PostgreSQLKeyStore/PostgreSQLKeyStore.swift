// The keys in a database that several gateways share, through libpq: a journal for the gateway, and
// the `keys` commands.
//
// libpq is used unchanged: it has TLS, passwords from a file and the choice of the server that
// accepts writes (`target_session_attrs`), and PostgreSQL's own tools use it. This code tries
// several hosts, one after the other, and looks up their names, since libpq has no deadline for
// either (`DatabaseServers`, `NameLookUp`).
//
// A gateway has five connections: the writer's, which sends all waiting changes as one transaction
// in one round trip (libpq's pipeline mode); the reader's; one that waits for notifications; one
// for the renewal of receipts; and one for orders and what the gateways of a fleet tell each other
// (`FleetDatabase`). A lost connection is made again, with growing pauses. Every wait has a
// deadline.
//
// The database decides. An event loop looks up a key in memory and verifies; then the use waits for
// the writer's next transaction. One statement of it compares counters, spends challenges, checks
// revocations and answers each use (`UseStatement`). So it does not matter which gateway serves a
// client, and how old that gateway's knowledge is.
//
// The promises and what keeps them:
//
// 1. No assertion is admitted twice: the row of its key is locked while its counter is compared and
//    raised, and a spent challenge is a row with a unique name.
// 2. A key answered 201 is in the database: the transaction was committed.
// 3. A revoked key is refused from the moment the command returns: each use checks it.
// 4. A stored counter never goes down: all writes take the highest of both.
//
// The database sets `synchronous_commit`. If it is off, a crash of the database's server may lose
// the last answered transactions, and with them counters and spent challenges.
//
// Files: DatabaseServers, DatabaseConnection, DatabaseLink and DatabaseRows speak to libpq;
// DatabaseFault says what to do about faults, and DatabaseCheckup looks for the doctor;
// DatabaseSchema and DatabaseTables make the tables; UseStatement, LimitStatement,
// TokenStatement and DatabaseStatement+Enrolment are the SQL, beside that of all databases in
// `KeyStore/Tables`; PostgreSQLKeyJournal is the gateway's, PostgreSQLKeyArchive the commands'.
