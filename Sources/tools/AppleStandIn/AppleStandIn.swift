// A stand-in for Apple's services, for tests and the demonstration.
//
//   StandInServer         the server: TLS with an authority of its own, a port for each host
//   StandInTeam           a team with its key, which the stand-in knows and a gateway is given
//   StandInPlay           what is done with a call: the proper thing, a status, silence, garbage
//   StandInCalls          what was called, when, and what was answered
//   TokenCheck            the token of a call, looked at as Apple does
//   ReceiptService        receipts exchanged for newer ones, good or wrong
//   BitService            the two bits of devices
//   StandInConnection     a connection; a request on it, and its answer
//
// It checks what Apple is known to check (reference: "Assessing fraud risk", "Accessing and
// modifying per-device data"): the token's signature, key, team and age; that a receipt or a device
// token came to the host of its environment; the members of DeviceCheck's bodies.
