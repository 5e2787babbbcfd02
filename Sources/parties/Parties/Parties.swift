// The parties that the gateway asks, a folder for each: its settings, its calls, what its answers
// mean, and what operators read of it.
//
//   Apple           what Receipts and DeviceCheck share: keys of teams, hosts, the form of a call
//   Receipts        newer receipts of keys for older ones: which is due, its renewal, its new state
//   DeviceCheck     the two bits of a device
//   GoogleList      Google's list of revoked certificates: kept, and compared with enrolled keys
//   PlayIntegrity   the tokens that Google's Play Integrity gives to Android apps
//   Siteverify      tests for people: reCAPTCHA, hCaptcha, Turnstile
//   TokenIssuers    issuers of JSON Web Tokens, whose keys verify tokens here
//
//   Party           a party that works by itself: when it starts, takes a reload and ends
//   PartyList       all parties of a gateway, a line each
//   PartyContext    what a party gets at its start
//   ProofParty      a party that knows tokens, so that a request waits for it
//   ProofParties    the list of them, a line each
//   ProofCalls      its calls, and which of the tokens were used
//   UsedTokens      tokens of clients, each of which is good for one request
//   TokenParties    the parties by the names of their proofs, and the limits of calls to them
//   PartyFault      why a party has said nothing
//   CallClient      makes the calls to a party, on a queue of its own
//
// `OutboundCalls` has what their calls share, as machines. Most of a folder is as pure; the files
// that run it are listed in `Tests/TidyTests/Support/Held.swift`.
