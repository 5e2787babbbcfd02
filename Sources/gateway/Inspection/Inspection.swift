// What `portcullis verify` and `portcullis inspect` do, without the command line around it.
//
// A trial (`AttestationTrial`, `AssertionTrial`, `ReceiptTrial`) is made of option texts as someone
// typed them, and throws a `UsageError` for one that cannot be meant. It then judges one object and
// gives a `Report`: one JSON object and an exit status. Judging is AppAttest's; nothing is decided
// here but what a receipt's expiration means.
//
// A portrait (`ObjectPortrait`) shows what an object says and judges nothing.
//
// Objects come in files, raw or in base64: see `ObjectFile`, the only place here that reads any.
// No code here reads the clock: times are options, and the word `now` in one stands for a time that
// the caller gives.
