/// What a TLS session holds in memory at most, whatever its peer does.
package enum TLSLimits {
    /// The most bytes of ciphertext that were fed and not read yet. 1 MiB: many times what a lane
    /// reads at once, so it is reached only by a driver that feeds and never reads.
    package static let unreadCiphertextMax = 1 << 20

    /// The most bytes of ciphertext that were made and not taken yet. 4 MiB: a write beyond it is
    /// not accepted; take first.
    package static let untakenCiphertextMax = 4 << 20

    /// The most bytes that are kept in plain until the handshake has ended. 256 KiB: a request
    /// head and the first pieces of its body.
    package static let earlyPlaintextMax = 256 << 10

    /// The most bytes a peer may spend on a handshake. 512 KiB: OpenSSL allows a certificate chain
    /// of 100 KiB and a ClientHello of 128 KiB.
    package static let handshakeInputMax = 512 << 10

    /// The most bytes of answers that a peer can draw from us without sending any content, by key
    /// updates (RFC 8446 §4.6.3) or attempts to renegotiate. 16 KiB: some hundred answers.
    package static let answersMax = 16 << 10

    /// The most records that are sent under one key. 2^23: RFC 8446 §5.5 allows 2^24.5 with
    /// AES-GCM.
    package static let recordsPerKeyMax = 1 << 23
}
