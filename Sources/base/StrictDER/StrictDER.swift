// DER (X.690), the part of it that certificate extensions, receipts and test certificates use.
//
// Read: definite, minimal lengths; tags of at most three digits. What breaks a rule is a `DERError`
// with the offset, never a trap. `DERCursor` walks the bytes without copying, `DEREncoder` writes.
// What OpenSSL reads by itself (certificates, keys, CMS messages) is in Cryptography. This target
// imports nothing, so that the app's half of the package can write a test certificate without it.
