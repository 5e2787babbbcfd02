// A key that a device keeps and that signs an app's requests: what is the same on every platform.
//
// - `KeyID` names the key everywhere: on the wire, in the store, in logs.
// - `SignCounter` counts what the key has signed, where the platform counts.
// - `DevicePlatform` says whose attestation vouches for the key.
// - `AttestedKey` is what the verified attestation of any platform tells a store.
//
// The formats themselves are modules of their own: `AppAttest` verifies Apple's. A format that
// counts nothing gives no counter. Then the challenge alone makes a signature good once, so a store
// refuses a use that has neither.
