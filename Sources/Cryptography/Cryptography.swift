// SHA-256, HMAC, ECDSA on P-256, X.509 paths and CMS messages, on top of the system's OpenSSL 3.
//
// This target and `TLSSession` are the only importers of `COpenSSL`. What leaves it are Swift
// values: digests, keys, times, certificates. No C type stands in a public signature, every input
// has a named limit, and a call that fails leaves OpenSSL's error queue of the thread empty,
// because TLS on the same thread reads that queue.
//
// Nothing here reads a clock or trusts the system's certificate store: time and anchors are
// parameters.
//
// Which of OpenSSL's interfaces verifies a signature was measured (release build, one core, OpenSSL
// 3.0, a bare verification with everything prepared = 1.00):
//
//     parse a key and verify     EVP_PKEY_fromdata + EVP_PKEY_verify         1.36
//                                EC_KEY_oct2key + ECDSA_do_verify            1.01
//     verify alone               EVP_DigestVerify, fetched digest            1.06
//                                EVP_PKEY_verify, context kept               1.00…1.08
//                                ECDSA_do_verify, DER read here              1.00
//
// The second line is what `P256.Verifier` does. Reading a point and checking that it lies on the
// curve is 1/100 of a verification, so parsed keys need no cache: a public key is 65 octets, and
// the objects of OpenSSL belong to the verifier, one for each lane.
