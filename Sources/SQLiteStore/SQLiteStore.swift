// The keys in a SQLite file, through GRDB: a journal for the gateway, and what the `keys` commands
// do.
//
// Files, all of mode 0600 and, when root makes them, of the folder's owner:
//
//     portcullis.db           the database; WAL mode, so there are -wal and -shm beside it
//     portcullis.db.lock      held with flock by the one gateway that uses the database
//     portcullis.db.changes   4,096 octets, the first eight of which are an atomic counter that the
//                             gateway and the commands map; a command raises it when it has
//                             changed keys
//
// `synchronous` is FULL: a commit that returned survives a power cut, if the disk tells the truth.
// The folder must be on a local disk: neither WAL nor a mapped word works over a network file
// system.
//
// Counters are not written into the rows of their keys at once. A commit adds one blob to the table
// `counter_log`; when that has grown to 7 MiB, its entries are merged into the rows, sorted, in
// pieces between commits. A row lies on a page of 4 KiB with some thirty others: with a million
// keys nearly every update by itself touches a page of its own, and costs 17 µs of CPU instead of
// 4. Counters are merged by `max` and a union of windows everywhere, so late, repeated or
// interrupted writes are harmless, and a command may raise counters beside the gateway. Whoever
// reads keys merges the log too.
//
// The commands work with and without a gateway. They commit, raise the word, and then see whether
// the gateway that holds the lock maps the same file; if somebody has replaced the file, they say
// so and fail, since a revocation that a running gateway does not see is none.
