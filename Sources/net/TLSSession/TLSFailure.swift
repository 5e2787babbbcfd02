/// Why a TLS connection can't go on.
///
/// `reason` is what code compares and metrics count; `detail` is OpenSSL's own text for the log and
/// is left out of `==`. A detail never holds key material or bytes of the application.
package struct TLSFailure: Error, Sendable {
    /// What went wrong. The raw value is a log field and a metric label: add, do not rename.
    package enum Reason: String, CaseIterable, Sendable {
        /// The peer speaks HTTP without TLS.
        case plainHTTP = "plain-http"
        /// The peer's first byte begins no TLS record.
        case notTLS = "not-tls"
        /// The two sides share no version of TLS.
        case versionUnsupported = "version-unsupported"
        /// The two sides share no cipher suite, group or signature algorithm.
        case noSharedCipher = "no-shared-cipher"
        /// The peer named application protocols, and HTTP/1.1 is not among them (RFC 7301 §3.2).
        case noSharedProtocol = "no-shared-protocol"
        /// The origin's certificate leads to no authority that is trusted here.
        case certificateUntrusted = "certificate-untrusted"
        /// A certificate of the origin's chain has expired.
        case certificateExpired = "certificate-expired"
        /// A certificate of the origin's chain is not valid yet.
        case certificateNotYetValid = "certificate-not-yet-valid"
        /// The origin's certificate is for another name.
        case hostMismatch = "host-mismatch"
        /// The client has shown no certificate where one is required.
        case certificateMissing = "certificate-missing"
        /// The peer did not like the certificate that was shown to it.
        case certificateRefusedByPeer = "certificate-refused-by-peer"
        /// The peer ended the connection with another fatal alert.
        case peerAlert = "peer-alert"
        /// A record or handshake message breaks the protocol, or its authentication failed.
        case malformed = "malformed"
        /// The connection ended before the handshake did.
        case endedInHandshake = "ended-in-handshake"
        /// The handshake did not end in time.
        case handshakeTimeout = "handshake-timeout"
        /// The connection ended without close_notify: what was read may be cut short (RFC 8446
        /// §6.1).
        case truncated = "truncated"
        /// A limit of ``TLSLimits`` was reached.
        case limitReached = "limit-reached"
        /// OpenSSL failed for a reason of its own, such as memory.
        case library = "library"
    }

    /// The connection ended in the middle of the handshake.
    package static let ended = TLSFailure(.endedInHandshake, "the connection ended")
    /// The peer was too slow.
    package static let late = TLSFailure(.handshakeTimeout, "the handshake took too long")

    /// What went wrong.
    package let reason: Reason
    /// OpenSSL's text or what was found, for the log.
    package let detail: String

    /// Whether the peer's certificate was not taken.
    package var isAboutCertificate: Bool {
        switch reason {
        case .certificateUntrusted, .certificateExpired, .certificateNotYetValid, .hostMismatch:
            true
        case .plainHTTP, .notTLS, .versionUnsupported, .noSharedCipher, .noSharedProtocol,
            .certificateMissing, .certificateRefusedByPeer, .peerAlert, .malformed,
            .endedInHandshake,
            .handshakeTimeout, .truncated, .limitReached, .library:
            false
        }
    }

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

extension TLSFailure: Equatable {
    package static func == (left: TLSFailure, right: TLSFailure) -> Bool {
        left.reason == right.reason
    }
}

extension TLSFailure: CustomStringConvertible {
    package var description: String { "\(reason.rawValue): \(detail)" }
}
