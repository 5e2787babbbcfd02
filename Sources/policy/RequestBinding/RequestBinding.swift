// The bytes that are signed: the only place that knows them. Client, gateway, load generator and
// tests share this module, so that none of them can drift.
//
// clientDataHash = SHA-256(client data), and the client data is one of three forms, chosen by the
// rule:
//
//   lines      the request, described in lines that each end in one LF; a part that the rule leaves
//              out is written as "-":
//
//                  portcullis-request-v1
//                  POST                          method, as in the request line
//                  /v1/orders?dry=1              target, as in the request line
//                  sha-256=:X48E9qOokqqrvd...=:  digest of the content
//                  AQEAAAAAAAAAA...              challenge
//                  idempotency-key: 8e03978e     one line a signed header field
//
//   content    the content's bytes, as in Apple's own sample
//   challenge  the challenge's bytes
//
// A signed header that the request does not carry is written as its bare name, without a colon, so
// that "absent" and "empty" differ. Several lines of one field are joined by ", " (RFC 9110 §5.3).
// A request without content signs the digest of zero bytes.
//
// No bytes are client data of two forms, nor of two rules of the line form that sign different
// parts or fields (`ClientDataDomain`, `RequestLines`):
//
// * Client data that begin with "portcullis-request-v" are lines, those that have the shape of a
//   challenge's text are a challenge, all others are content. Each form accepts its own alone.
// * No part holds a line feed (RFC 9110 §5.5, RFC 9112 §3), so the lines come apart again: the
//   fifth is always the challenge, and each from the sixth on is a field and begins with its name.
//   "-" is no target, digest or challenge of ours; as a method it is a token (RFC 9110 §9.1), and
//   refused where the method is signed.
// * An attestation is no assertion: Apple signs it, the device's key does not.
//
// Nothing here hashes: digests come in as 32 bytes.
