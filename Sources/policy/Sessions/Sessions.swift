// Sessions: a client opens one with one assertion, then signs many requests with it.
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
// Numbers are big-endian. The key of the codes is drawn at the start. In an upgrade it goes from
// this process's memory to that of the successor. The secret of a session is HMAC-SHA-256 under the
// same key over "portcullis-session-secret" and the id. The client gets it once, when the session
// is opened.
//
// The promises and what keeps them:
//
// * A sequence number is used once. The lock of its session decides, also when event loops race.
// * Only the secret moves the window: the code of a request is compared before its number is used.
// * After a restart no older session is known: the key is new. After an upgrade all sessions are
//   known, with their used numbers; the old process asks its successor about each.
// * The sessions of a key end with the key: the judge looks it up at each request.
// * Memory is bounded, in total and for each key. The oldest session is evicted, and its client
//   signs with an assertion again.
//
// Memory: a session takes some 600 bytes with a window of 256, so that the default limit of 100,000
// sessions takes at most 60 MB. A window of 4096 takes 500 bytes more.
