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
//   content    the content's octets, as in Apple's own sample
//   challenge  the challenge's octets
//
// A signed header that the request does not carry is written as its bare name, without a colon, so
// that "absent" and "empty" differ. Several lines of one field are joined by ", " (RFC 9110 §5.3).
// A request without content signs the digest of zero octets.
//
// Nothing here hashes: digests come in as 32 octets.
