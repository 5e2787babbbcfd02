/// Why a call has no answer. The raw value is a label of metrics and a word of the log.
package enum AppleFault: String, CaseIterable, Hashable, Sendable, Error {
    // Nothing was sent.

    /// No key is configured, none of the call's team, or no team was named where there are several.
    case noCredential = "no-credential"
    /// The call is for a key of a test authority, and no host is configured for those.
    case noHost = "no-host"
    /// As many calls wait for this host as may wait.
    case queueFull = "queue-full"
    /// The call's time ended while it waited for its turn.
    case queueTimeout = "queue-timeout"
    /// The host failed so often that it is left alone for a while.
    case breakerOpen = "breaker-open"
    /// The gateway is ending.
    case stopping

    // It was begun.

    /// No name, no connection.
    case unreachable
    /// The handshake failed: most often a certificate that is not trusted.
    case tls
    /// No whole answer in time.
    case timeout
    /// The connection ended before the whole answer was there.
    case broken
    /// The answer is longer than any that Apple gives.
    case answerTooLong = "answer-too-long"
    /// The answer is not HTTP.
    case garbled
}
