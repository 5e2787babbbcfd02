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

    package init(url: String, timeout: Duration) { (self.url, self.timeout) = (url, timeout) }

    package init(_ call: CallRequest) {
        self.init(url: call.url, timeout: call.timeout)
        fields = call.fields.map { ($0.name, $0.value) }
        (contentType, content) = (call.contentType, call.content)
        (roots, proxy) = (call.roots, call.proxy)
        avoidsOldConnections = call.avoidsOldConnections
        answerBytesMax = call.answerBytesMax
    }
}

/// Makes the calls to all parties.
package protocol HTTPSSending: Sendable {
    /// Begins a call. `done` is called once, on any thread, and must not wait.
    func send(
        _ request: HTTPSRequest,
        _ done: @escaping @Sendable (Result<HTTPSAnswer, HTTPSFault>) -> Void
    )
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

    package init(
        status: Int,
        retryAfter: Int?,
        content: [UInt8],
        fields: [String: String] = [:]
    ) {
        (self.status, self.retryAfter) = (status, retryAfter)
        (self.content, self.fields) = (content, fields)
    }
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

    package init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

extension CallFailure {
    package init(_ reason: HTTPSFault.Reason) {
        switch reason {
        case .unreachable: self = .unreachable
        case .tls: self = .tls
        case .timeout: self = .timeout
        case .broken: self = .broken
        case .answerTooLong: self = .answerTooLong
        case .garbled: self = .garbled
        case .stopped: self = .stopping
        }
    }
}

extension CallReply {
    package init(_ result: Result<HTTPSAnswer, HTTPSFault>) {
        switch result {
        case .success(let answer):
            self = .answered(
                status: answer.status,
                retryAfter: answer.retryAfter,
                body: answer.content
            )
        case .failure(let fault): self = .failed(CallFailure(fault.reason))
        }
    }
}
