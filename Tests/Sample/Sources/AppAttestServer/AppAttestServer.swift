// A server's use of AppAttest in one type, `DeviceRegistry`, compiled as somebody else's code is:
// with public names alone, under MemberImportVisibility, in one file with swift-crypto.
//
// Two packages compile it: Tests/Sample, which depends on this one from outside, and this one,
// whose AppAttestTests run it and compare it with the documentation.
