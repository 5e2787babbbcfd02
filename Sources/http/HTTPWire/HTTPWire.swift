// HTTP/1.1 bytes: reading and writing heads, bodies and trailers for an intermediary.
//
// Everything here is pure: bytes in, values out, no clock, no descriptor, no lock. Input is a
// `Span<UInt8>` that the caller owns; what is found is given as ranges into it, so that a head
// costs no allocation once its storage has grown. Nothing here makes a `String` of what a stranger
// sent.
//
//   HeadScanner     finds the end of a head in a growing buffer, each byte looked at once; rejects
//                   at once what can never become a head
//   RequestHead     a complete request head, read strictly: RFC 9112 §§2–6, RFC 9110 §§5–7
//   ResponseHead    the same for what an origin answers
//   TargetView      the view of a path that is matched; tells what can't be viewed in one way
//   PathReading     what servers do to a path besides: the other ways in which it is looked up
//   BodyReader      length, chunked or until close: ranges of content, its exact end, its trailers
//   HeadWriter      forwarded heads and local answers, appended to a reusable array
//   ClientAddress   the client's address behind trusted proxies, and which of them are believed
//   RequestID       the request's name: a trusted proxy's, or our own
//   ProxyHeader     the PROXY protocol's header, in which a proxy names the client of a connection
//   ProvenanceWriter  the fields that say so to the origin
//
// Life of a request on one lane, without allocation in steady state:
//
//   1. `scanner.scan(octets, limits:)` on what was read. `.needMore`: keep the bytes, the scanner.
//   2. On `.complete(range)`: `head.read(octets.extracting(range), ...)`. All ranges of `head`
//      count from the first byte of that span.
//   3. `view.read(octets, head.path)`; match rules against `view`; `view.refusal(allowing:)`.
//   4. `HeadWriter.beginRequest(...)`, own fields by `HeadWriter.field`, `HeadWriter.endHead`.
//   5. `body.read(octets, from: &position)` until it says `.finished`; `position` then is the first
//      byte of the next request.
//
// Strictness. Where RFC 9112 lets a recipient be lenient, this module is not: CRLF only, one space,
// no obs-fold, `Transfer-Encoding` exactly `chunked`, `Content-Length` once. Each leniency that was
// left out has let requests be smuggled past another proxy. A malformed head always ends the
// connection. Two exceptions concern origins, which we don't choose: a status line without the
// space before an empty reason, and white space before the colon of a response field, which
// RFC 9112 §5.1 asks an intermediary to remove.
