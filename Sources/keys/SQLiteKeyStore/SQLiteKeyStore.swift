// The keys in a SQLite file, through GRDB: a journal for the gateway, and what the `keys` commands
// do.
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
// `synchronous` is FULL: a commit that returned survives a power cut, if the disk tells the truth.
// The folder must be on a local disk: neither WAL nor the socket works over a network file system.
//
// No file is mapped by us. A mapped word was tried for the changes: on a full disk a write to a
// page that has no block is a SIGBUS, and so is every access after the file was cut. The gateway's
// event loops read a word of its own memory; a command that changes keys waits for an answer
// instead. SQLite maps the index of its log (-shm); see StoreFiles for what is done when that is
// cut.
//
// Counters are not written into the rows of their keys at once. A commit adds one blob to the table
// `counter_log`; when that has grown to 7 MiB, its entries are merged into the rows, sorted, in
// pieces between commits. A row shares a page of 4 KiB with some thirty others: with a million
// keys nearly every update by itself touches a page of its own, and costs 17 µs of CPU instead of
// 4. Counters are merged by `max` and a union of windows everywhere, so late, repeated or
// interrupted writes are harmless, and a command may raise counters beside the gateway. Every
// reader of keys merges the log too.
//
// The table `renewals` says of each receipt when it may be renewed, what it said and how the last
// try went. It is apart from the receipts, which take a page each: a scan of it must not read them.
// It is scanned over a connection of its own.
//
// The table `secrets` has the key of the enrolment challenges' codes. It is drawn at the first
// start and goes wherever the database goes: a copy of it lets others make enrolment challenges,
// and so pass by the rate of enrolments, and attest keys for later. It is in no export.
//
// The commands work with and without a gateway. They compare the files at their paths with those
// that a running gateway has open before they touch any, and refuse when one differs: SQLite goes
// on with a file that was moved or deleted, so what they wrote would be lost on the gateway. They
// commit, tell the gateway, and fail when it does not confirm, since a revocation that a running
// gateway does not see is none. The gateway compares the same before each commit and once a second;
// while one differs, or the changes can't be read, it answers for no key.
//
// A copy of the database that is put back lowers counters and undoes revocations. So each
// transaction raises a number, the generation, and the file beside the database has it too. An
// older number, another store, an empty database or none at all is refused at the start unless the
// operator accepts what that means (StoreAge). `store restore` puts a copy back and merges what the
// present database knows. Where that is not possible, and where an older copy is accepted, the
// counters of all keys may be too low: each then needs a challenge once (CounterAnchors).
//
// A backup (StoreBackup) is a `VACUUM INTO` beside the running gateway, which is asked over the
// socket to write first what waits.
