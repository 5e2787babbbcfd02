// Devices and their authority in software. They make what devices of Apple make (attestations,
// assertions and receipts) and what Android phones make (chains of certificates, and signatures
// with a counter), of the shape that genuine ones have, under a root of their own.
//
//     let authority = SoftwareAuthority(seed: seed, madeAt: now)
//     …authority.rootPEM into the file that test_root names…
//     let device = SoftwareDevice(
//         authority: authority, appID: id, environment: .production, shape: .beforeTwentySeven)
//     var key = device.makeKey()
//     let attestation = key.attestation(clientDataHash: hash, at: now)
//     let assertion = key.assertion(clientDataHash: otherHash)
//     let proof = key.proof(of: request, signing: .lines(.all, headers: []))
//
// An Android phone has a `SoftwarePhone` in the place of environment and shape: what its hardware
// and its system say, all of which can be set. Its keys are of the same type, and sign in Android's
// form.
//
// For tests, demonstrations and load. Nothing here is accepted unless its root is trusted, which is
// what an app entry with `test_root` does, and the program `portcullis` is never linked with it.
//
// Each object can also be made wrong on purpose, in one place, by a case of `AttestationDamage`,
// `AssertionDamage` or `ReceiptDamage`. All signatures that the damage does not touch are made over
// the damaged object, so that a verifier refuses it for this one reason, which the case names.
//
// Time is a parameter. Keys come from a seed or at random; signatures are random, so that two runs
// from one seed make different bytes that verify alike.
