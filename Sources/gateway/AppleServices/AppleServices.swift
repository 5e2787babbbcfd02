// The gateway's calls to Apple's servers, as values and machines without I/O, clock or lock.
//
//   AppleCalling                  where calls are handed in
//   AppleService, AppleCall       what is asked: a receipt's renewal, or one of DeviceCheck's calls
//   AppleCalls, AppleSettings     Apple as a party that is called: how a call is written
//   AppleCredential               a team's key; AppleKeyFault says why a file holds none
//   ProviderToken                 the token that a call carries
//   AppleHost                     where calls go
//   DeviceQuestion, DeviceReply   DeviceCheck's three calls, with their bodies and answers
//   RenewalSchedule               which receipt is renewed when; RenewalQueue holds the next few
//   ReceiptReply                  what Apple's answer says of a receipt
//
// `OutboundCalls` has the machine that all calls share. `Gateway/CallClient` performs its
// decisions, and `Gateway/ReceiptRenewer` those about receipts.
