// The keys in a SQLite file, through GRDB: a journal for the gateway, and the `keys` commands.
//
// Files, all of mode 0600 and, when root makes them, of the folder's owner:
//
//     portcullis.db           the database; WAL mode, so there are -wal and -shm beside it
//     portcullis.db.lock      held with flock by the one gateway that uses the database; says which
//                             process that is and which files it has open
//     portcullis.db.socket    on which a command tells the gateway that it has changed keys, and is
//                             answered when the gateway has read that
//     portcullis.db.generation  how far the database has come, to compare at the next start
//     portcullis.db.restored    while `store restore` works
//     portcullis.db.before-…    the database that a backup has taken the place of
//
// `synchronous` is FULL: a commit that returned survives a power cut, if the disk really writes.
// The folder must be on a local disk: neither WAL nor the socket works over a network file system.
//
// This code maps no file: on a full disk a write to a page without a block is a SIGBUS, and so is
// every access after the file was truncated. So event loops read a word of the gateway's own
// memory, and a command that changes keys waits for an answer. SQLite maps the index of its log
// (-shm); StoreFiles handles its truncation.
//
// Counters are not written into the rows of their keys at once. A commit adds one blob to the table
// `counter_log`. When that has grown to 7 MiB, its entries are merged into the rows, sorted, in
// pieces between commits. A row shares a page of 4 KiB with some thirty others. With a million keys
// nearly every single update would touch another page, and cost 17 µs of CPU and not 4. Counters
// are merged by `max` and a union of windows everywhere, so late, repeated or interrupted writes
// are harmless, and a command may raise counters beside the gateway. Every reader of keys merges
// the log too.
//
// The table `renewals` has the state of each receipt: when it may be renewed, its metric, and the
// result of the last try. The receipts are in another table, since they take a page each and a scan
// of the states must not read them. The scan has its own connection.
//
// The table `secrets` has the key of the enrolment challenges' codes. It is drawn at the first
// start and is part of every copy of the database. An attacker with a copy can make enrolment
// challenges, and so bypass the rate of enrolments and attest keys in advance. It is in no export.
//
// Of an erased key its row has a mark in the place of the key id (DatabaseMarks). The secret of the
// marks is in the table `secrets`, too, and goes along with copies and exports.
//
// The commands work with and without a gateway. Before they touch a file, they compare the files at
// their paths with those that a running gateway has open, and refuse when one differs. SQLite
// continues with a file that was moved or deleted, so the gateway would not see their changes. They
// commit, notify the gateway, and fail when it does not confirm, since a revocation that a running
// gateway does not see is ineffective. The gateway makes the same comparison before each commit and
// once a second. While a file differs, or the changes can't be read, it admits no key.
//
// Restoring a copy of the database lowers counters and undoes revocations. So each transaction
// raises a number, the generation, which the file beside the database has too. A start refuses an
// older number, another store, an empty or a missing database, unless the operator accepts the
// consequences (StoreAge). `store restore` restores a copy and merges the state of the present
// database. Where that is not possible, and where an older copy is accepted, the counters of all
// keys may be too low: each key then needs a challenge once (CounterAnchors).
//
// A backup (StoreBackup) is a `VACUUM INTO` beside the running gateway. The command first asks the
// gateway over the socket to write all waiting changes.
