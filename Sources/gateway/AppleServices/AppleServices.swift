// The gateway's calls to Apple's servers, as values and machines without I/O, clock or lock.
//
//   AppleCalling                  where calls are handed in
//   AppleService, AppleCall       what is asked: a receipt's renewal, or one of DeviceCheck's calls
//   CallReply, CallFailure        what became of it, and why there is no answer
//   AppleCredential               a team's key; AppleKeyFault says why a file holds none
//   ProviderToken                 the token that a call carries
//   AppleHost, AppleHosts         where calls go
//   CallLine                      the calls to one host: queue, rate, calls under way
//   CallBreaker, CallOutcome      whether the host is called at all
//   BackOff                       how long what failed is left alone
//   AppleTally                    what was counted
//   DeviceQuestion, DeviceReply   DeviceCheck's three calls, with their bodies and answers
//   UsedTokens                    device tokens, each of which is good for one request
//   RenewalSchedule               which receipt is renewed when; RenewalQueue holds the next few
//   ReceiptReply                  what Apple's answer says of a receipt
//
// The way of a call: it is handed in, waits in the line of its host until the rate and the number
// of concurrent calls allow it, gets the team's token, and is sent. After an answer 401 a new token
// is made, and the call is repeated once. There is no other retry here: only the caller knows
// whether one is right.
//
// `Gateway/AppleClient` performs their decisions: it owns lines, tokens, clocks and connections.
// `Gateway/ReceiptRenewer` does so for receipts.
