// Verifies the objects of Apple's App Attest service and its devices: attestations, assertions and
// receipts. AppAttest.docc shows how to use it, with an example of the whole conversation.
//
// Each object is read into an `Unverified…` value, whose `verified(…)` runs Apple's steps in
// Apple's order. It gives a `Verified…` value, which nothing else can make, or throws the refusal
// of the first step that fails.
//
// What this does not do: it knows no HTTP, no store and no challenge. It reads no clock and has no
// default for time, roots, App IDs, environments or counters. Whether the challenge in the client
// data is one that was issued (Apple's step 6 of an assertion), whether a key is enrolled already,
// and the atomic advance of the counter belong to the caller.
//
// `import AppAttest` is all that a user writes. What the signatures name and other targets define
// is exported here, name by name: other names of those targets would clash with those of
// swift-crypto (`SHA256`), and their targets are no products.
//
// Bytes go in as `[UInt8]`, or as any sequence of bytes, which `Data` and the digests of
// swift-crypto are; so those overloads need no Foundation. Two things do: `LocalizedError`, and
// `Date` in and out of `UnixTime`. They are in ObjectRefusal+Foundation.swift, which imports
// FoundationEssentials for these names alone, so that the rest of the target stays without clock
// and I/O (Tests/TidyTests holds both).
//
// Results are `Encodable`, and the values in them `Codable`. A proof is not `Decodable`: bytes that
// were decoded prove nothing. `AttestationRecord` is what a server stores and reads back.
//
// Supported on Linux and on Apple's systems. What is cryptography is in `Signatures`, which has
// OpenSSL in the gateway and swift-crypto everywhere else.
//
// Sources, cited by step where they are obeyed:
//   Apple, "Validating apps that connect to your server"
//   (developer.apple.com/documentation/devicecheck/
//     validating-apps-that-connect-to-your-server), cited as "Validating apps";
//   Apple, "Attestation Object Validation Guide", whose two samples are test fixtures;
//   Apple, "Assessing fraud risk", for receipts.
// Where Apple's objects and Apple's text differ, the objects win; the places say so.

@_exported public import DeviceKey

@_exported public import struct Signatures.P256PublicKey
@_exported public import struct Signatures.UnixTime
@_exported public import class Signatures.X509Certificate
@_exported public import struct Signatures.X509CertificateError
