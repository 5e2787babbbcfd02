// CBOR (RFC 8949), the strict part of it that App Attest objects are written in.
//
// Read: definite lengths only; arguments in their shortest form (§4.2.1); no map with a key twice
// (§5.6); text that is UTF-8 (§3.1); one item and nothing after it. Depth, number of items and
// number of bytes are a `CBORBudget`, which is consumed. What breaks a rule is a `CBORError` with
// the offset, never a trap. The order of map keys is not checked: Apple does not sort them.
//
// Two ways to read: `CBORValue(decoding:budget:)` makes a tree; `CBORCursor` walks the bytes
// without copying, for the assertion that comes with each request.
