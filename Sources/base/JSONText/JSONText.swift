// JSON texts (RFC 8259) on arrays and spans of bytes, without Foundation: the one reader and the
// one writer of the gateway and its tools.
//
// Reading is strict and total: a text that RFC 8259 does not allow is an error with a column, never
// a trap. The texts come from strangers, so no number can overflow and nesting has a limit.
//
// - `JSONReader` is the cursor below everything that reads.
// - `JSONDocument` reads the few members of a small object that a caller names.
// - `JSONPointer` finds one string anywhere in a text.
// - `JSONWriter` writes a text from the first byte to the last, into memory.
// - `JSONValue` is a text as a tree, for callers that build it in pieces.
