// What a client shows that an issuer gave it.
//
//   Challenges     the gateway's own challenges, each good once
//   Sessions       the gateway's own sessions
//   TokenVerifier  tokens of other issuers: JSON Web Tokens (RFC 7519) in the compact form of JSON
//                  Web Signatures (RFC 7515), by the issuers' sets of public keys (RFC 7517)
//
// Tokens of other issuers are pure: the time, the keys and the terms are parameters. A token never
// chooses how it is checked. The algorithm is that of the key which it names, and the configuration
// has to name it too. Keys and addresses of keys inside a token are not looked at.
