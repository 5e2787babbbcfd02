// Text forms of bytes: base64 (RFC 4648) and hexadecimal, on arrays and spans, without Foundation;
// and the calendar that texts of times need.
//
// Everything here is pure and total: malformed text is `nil`, never a trap. The gateway reads key
// ids, assertions, challenges and digests from header fields, so these functions see what strangers
// send.
