// App Attest without a device: for the Simulator, for continuous integration, for tests on Linux.
//
//   SoftwareAttestationService   stands where DCAppAttestService stands; give it to the client
//   DebugDevice                  one key that an operator imports, for debug builds
//   SoftwareDeviceTokenService   stands where DCDevice stands
//   TestAuthority                stands where Apple's certificate authority stands
//
//     let authority = try TestAuthority(pem: text)
//     let service = try SoftwareAttestationService(
//         appID: "ABCDE12345.com.example.shop.ci", authority: authority, folder: folder)
//
// What is made here is never taken for genuine. The certificates end in the root of the test
// authority, not in Apple's, and a gateway refuses them with `certificate-untrusted` unless an app
// entry says `environments: [test]` and names that root in `test_root`. Such an entry can't accept
// production too, and each verdict of it says `test`.
//
// A product of its own: an app links it in the targets of its tests, and no app ships it. It needs
// swift-crypto alone.
//
//   TestSigningKey, TestRoot          X.509 for root, issuer and the leaf of a key
//   SimulatedKey                      one key and how far it is: generated, attested, its counter
//   SimulatedReceipt                  what stands in the receipt of an attestation
//   SimulatedKeyFolder                the keys in files, shared by processes
