// SHA-256, HMAC, ECDSA on P-256, X.509 paths and CMS messages, on top of the system's OpenSSL 3 and
// of swift-crypto.
//
// This target and `TLSSession` are the only importers of `COpenSSL`. What leaves it are Swift
// values: digests, keys, times, certificates. No C type stands in a public signature, every input
// has a named limit, and a call that fails leaves OpenSSL's error queue of the thread empty,
// because TLS on the same thread reads that queue.
//
// Nothing here reads a clock or trusts the system's certificate store: time and anchors are
// parameters.
//
// Assertions are verified by BoringSSL, through swift-crypto: the one thing done for every request
// is the one place where a second library earns its keep. Measured (release build, one core, µs of
// CPU; parse a key of 65 bytes, read a DER signature, verify):
//
//     OpenSSL 3.0    EVP_PKEY_fromdata + EVP_PKEY_verify         104
//                    EC_KEY_oct2key + ECDSA_do_verify            77.7
//                    `openssl speed`, everything prepared        76.7
//     swift-crypto   PublicKey, ECDSASignature, isValidSignature 65.5
//
// Of the last, 1.4 are for the key and the check that it lies on the curve: parsed keys need no
// cache, and a public key is 65 bytes.
