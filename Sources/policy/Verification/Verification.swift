// What a request proves, the decision about it, and the enrolment of keys.
//
//   Judge             head (and, where the rule says so, the content's digest) → verdict
//   Verdict           pass, refuse or failure; whose key it was; what must still hold: a digest, a
//                     commit
//   Decision          mode × rollout × verdict → forward or refuse
//   Refusal           why a request is turned away; its RefusalRow has all that is said of it
//   LocalRow          an answer of the gateway's own: status, whose fault, the client's next step
//   Enrolment         the gateway's endpoints: challenges, keys
//   EnrolmentRefusal  why a call of these endpoints is turned away
//   SharedLimit       a limit that the gateways of a fleet share; EnrolmentAdmission has three
//   KeyRates          what each device has used of the limits of rules
//   AddressTable      what each client address has used of its limits
//
// Nothing here touches a socket, a file or a clock, and nothing holds a body: time comes in as a
// value, content as a digest. The key table and the challenge issuer are memory that the event
// loops share.
//
// Order. The cheapest check comes first: presence and syntax, the key, the address's limit of
// verifications, the signature, then the later checks of Apple's steps: App ID, counter, challenge,
// category, version. When several fail, the first in that order is reported. Counter and challenge
// are consumed only after all other checks, so an attacker changes nothing. A rule's rate counts
// just before that.
