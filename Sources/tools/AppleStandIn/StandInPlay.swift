package import SoftwareAuthenticator

/// What is done with a call.
package enum StandInPlay: Hashable, Sendable {
    /// What Apple does.
    case proper
    /// What Apple does, after so many milliseconds.
    case slow(milliseconds: UInt64)
    /// An answer with this status, whatever was asked.
    case status(Int, retryAfter: Int? = nil, body: String = "")
    /// No answer; the connection stays open.
    case hang
    /// Bytes that are no HTTP.
    case garbage
    /// The connection ends in the middle of the answer.
    case cut
    /// An answer of so many bytes.
    case long(bytes: Int)
    /// A receipt that is wrong, or so many seconds old.
    case receipt(ReceiptDamage? = nil, age: Int64 = 0)
    /// The attestation's kind of receipt, where a refreshed one is due.
    case receiptOfAttestation
    /// The very receipt that was sent.
    case receiptAsSent
}
