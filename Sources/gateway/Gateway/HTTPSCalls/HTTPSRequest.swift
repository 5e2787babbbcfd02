internal import CCurl

/// A request to another party's service: a POST with content, or a GET without.
package struct HTTPSRequest: Sendable {
    /// `https://host[:port]/path`, with ``allowsPlain`` also `http://…`.
    package var url: String
    /// Fields beside `Content-Type`, each without line ends.
    package var fields: [(name: String, value: String)] = []
    package var contentType: String?
    /// `nil` for a GET.
    package var content: [UInt8]?
    /// The fields of the answer that are kept, in lower case.
    package var keptFields: [String] = []
    /// The time for everything from the look-up of the name to the last byte.
    package var timeout: Duration
    /// The only authorities that are trusted, in PEM; `nil` for those that this machine trusts.
    package var roots: [UInt8]?
    /// `http://host:port` of a proxy that supports CONNECT; `nil` for none. The environment is not
    /// used.
    package var proxy: String?
    /// Whether `http://` is taken, too: for what is no secret, on a network that is trusted.
    package var allowsPlain = false
    /// Whether the connection is a new one.
    package var avoidsOldConnections = false
    /// The longest answer that is accepted.
    package var answerBytesMax = 256 << 10
}

/// The answer of a service.
package struct HTTPSAnswer: Hashable, Sendable {
    package let status: Int
    /// Seconds that it asks to wait; `nil` when it does not say.
    package let retryAfter: Int?
    package let content: [UInt8]
    /// Those of ``HTTPSRequest/keptFields`` that it has, by their names in lower case. Several
    /// fields of one name are joined by commas (RFC 9110 §5.2).
    package var fields: [String: String] = [:]
}

/// Why a call has no answer.
package struct HTTPSFault: Error, Sendable {
    package enum Reason: Hashable, Sendable {
        /// No name, no connection, or no way through the proxy; no byte of the request was sent.
        case unreachable
        /// The handshake failed: a certificate that is not trusted, or no common version.
        case tls
        /// Not ended in time, after bytes were sent.
        case timeout
        /// The connection ended before the answer was complete.
        case broken
        /// The answer has more bytes than ``HTTPSRequest/answerBytesMax``.
        case answerTooLong
        /// The answer is not HTTP.
        case garbled
        /// The calls were stopped.
        case stopped
    }

    package let reason: Reason
    /// For people: libcurl's name of the fault. It is one of a fixed list, so it contains no data
    /// of the call.
    package let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Maps a result of libcurl. `hasSent`: whether a byte of the request was sent.
    init(_ code: CURLcode, hasSent: Bool) {
        let detail = curl_easy_strerror(code).map { String(cString: $0) } ?? "\(code.rawValue)"
        self.init(Self.reason(code, hasSent: hasSent), detail)
    }

    private static func reason(_ code: CURLcode, hasSent: Bool) -> Reason {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_PROXY:
            .unreachable
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM:
            .tls
        case CURLE_OPERATION_TIMEDOUT: hasSent ? .timeout : .unreachable
        case CURLE_WRITE_ERROR, CURLE_FILESIZE_EXCEEDED: .answerTooLong
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
            .garbled
        default: hasSent ? .broken : .unreachable
        }
    }
}
