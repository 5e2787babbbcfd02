// A stand-in for Apple's services, for Google's list of revoked certificates, for tests for
// people and of Play Integrity, for tests and the demonstration.
//
//   StandInServer         the server: TLS with an authority of its own, a port for each host
//   StandInTeam           a team with its key, which the stand-in knows and a gateway gets
//   StandInPlay           how a call is answered: properly, by a status, by silence, by garbage
//   StandInCalls          the calls so far, their times and their answers
//   TokenCheck            checks the token of a call as Apple does
//   ReceiptService        exchanges receipts for newer ones, good or wrong
//   BitService            the two bits of devices
//   StatusListService     Google's list of revoked certificates
//   TestService           reCAPTCHA, hCaptcha, Turnstile and reCAPTCHA Enterprise
//   PlayIntegrityService  Google's service that reads integrity tokens, and its access tokens
//   StandInConnection     a connection, with one request after another
//
// It checks what Apple is known to check (reference: "Assessing fraud risk", "Accessing and
// modifying per-device data"): the token's signature, key, team and age; that a receipt or a device
// token came to the host of its environment; the members of DeviceCheck's bodies.
