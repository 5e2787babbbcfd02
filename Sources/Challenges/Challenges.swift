// The one-time challenges of the gateway.
//
// A challenge is 42 octets, sent as 56 characters of base64url:
//
//     offset  octets  meaning
//     0       1       version, 1
//     1       1       purpose: 1 enrolment, 2 assertion
//     2       8       epoch, drawn anew at every start
//     10      8       serial number, from 0 for each purpose
//     18      8       expiry, seconds since 1970
//     26      16      HMAC-SHA-256 over the octets before, its first half
//
// Numbers are big-endian. Issuing writes nothing durable and touches no bitmap, so that strangers
// who ask for challenges cost the gateway no memory. Spending sets one bit, in `SpentRing`.
//
// What is promised, and by what:
//
// * A challenge is spent once. One compare-and-exchange decides, whichever lanes race.
// * A spent challenge is never fresh again while it could be admitted, whatever the clock does. The
//   ring reuses a place for a serial number one round later; each word of the ring carries the
//   number of the round its bits belong to, which only grows, so that a serial of an earlier round
//   is refused for ever. The clock decides only when a place may be reused, never whether a bit is
//   believed.
// * After a crash no challenge from before is good: the epoch, and by default the secret, is
//   another.
//
// Memory: 2 bits for each challenge of the capacity, in pieces of 4 KiB that are made when the
// first challenge in them is spent, so at most capacity / 4 octets for each purpose, and 16,384
// challenges more (`capacity` is rounded up to whole pieces). The default of 8 Mi challenges is 2
// MiB.
