// Sessions: what a client opens with one assertion and then signs many requests with.
//
//   SessionTable       opens sessions and finds them; shared by the event loops
//   Session            one session: its key, its secret, which of its numbers were used
//   SessionID          the id as its text says it
//   SequenceWindow     the numbers of one session that were used
//   SessionSuccession  the next process, which decides in the place of this one after an upgrade
//
// An id is 33 bytes, sent as 44 characters of base64url:
//
//     offset  bytes  meaning
//     0       1      version, 1
//     1       8      serial number
//     9       8      expiry, seconds since 1970
//     17      16     HMAC-SHA-256 over "portcullis-session-id" and the bytes before, its first half
//
// Numbers are big-endian. The key of the codes is drawn at the start, and goes from this process's
// memory to that of the one that takes over in an upgrade. The secret of a session is HMAC-SHA-256
// under the same key over "portcullis-session-secret" and the id. The client gets it once, when the
// session is opened.
//
// What is promised, and by what:
//
// * A sequence number is used once. The lock of its session decides, whichever event loops race.
// * Only the secret moves the window: the code of a request is compared before its number is used.
// * After a restart no session from before is known: the key is another. After an upgrade all are,
//   with the numbers that were used; the old process asks the new one about each.
// * A key ends with its sessions: the judge looks it up at each request.
// * Memory is bounded, in all and for each key. What is evicted is the oldest, and its client signs
//   with an assertion again.
//
// Memory: a session takes some 600 bytes with a window of 256, so that the default limit of 100,000
// sessions takes at most 60 MB. A window of 4096 takes 500 bytes more.
