// Verifies what Apple's App Attest service and its devices make: attestations, assertions and
// receipts.
//
// Each object is read into an `Unverified…` value, whose `verified(…)` runs Apple's steps in
// Apple's order and gives a `Verified…` value, which nothing else can make, or throws the refusal
// of the first step that fails:
//
//     let attestation = try UnverifiedAttestation(octets: octets)
//     let key = try attestation.verified(
//         clientDataHash: hash.span, keyID: keyID, apps: [app],
//         roots: [AppleRoots.appAttestation], at: now)
//     …store key.publicKey, key.receipt and a counter of 0…
//
//     let assertion = try UnverifiedAssertion(octets: octets)
//     let verified = try assertion.verified(
//         clientDataHash: hash.span, key: publicKey, app: app.hash)
//     try verified.checkCounter(after: stored)
//     try verified.checkBuild(app.builds)
//     …store verified.counter, atomically…
//
// What this does not do: it knows no HTTP, no store and no challenge. It reads no clock and has no
// default for time, roots, App IDs, environments or counters. Whether the challenge in the client
// data is one that was issued (Apple's step 6 of an assertion), whether a key is enrolled already,
// and the atomic advance of the counter belong to the caller.
//
// Sources, cited by step where they are obeyed:
//   Apple, "Validating apps that connect to your server"
//   (developer.apple.com/documentation/devicecheck/
//     validating-apps-that-connect-to-your-server), cited as "Validating apps";
//   Apple, "Attestation Object Validation Guide", whose two samples are test fixtures;
//   Apple, "Assessing fraud risk", for receipts.
// Where Apple's objects and Apple's text differ, the objects win; the places say so.
