internal import Encodings
package import KeyStore

/// The meaning of an answer to the renewal of a receipt (Apple, "Assessing fraud risk").
///
/// | status | meaning | the key | all keys |
/// |---|---|---|---|
/// | 200 | a newer receipt | it takes the old one's place, if it verifies | |
/// | 304 | before field 19 | asked again later | |
/// | 400 | bad receipt, or the other environment | left alone for days | wait when it goes on |
/// | 401 | the token is not accepted | | wait |
/// | 404 | no data of the key | never asked again | |
/// | 429, 5xx | too many calls, or out of order | | wait |
/// | none | no connection | | wait |
/// | not sent | no credential of the team, or no host | asked again after a day | |
/// | others | not documented | left alone for days | wait when it goes on |
package enum ReceiptReply: Hashable, Sendable {
    /// 200: the new receipt, still to be verified.
    case receipt([UInt8])
    /// 200, but the content is not a receipt in base64.
    case unreadable
    case early
    case rejected(status: Int)
    case gone
    /// The gateway can't ask Apple about this key: its team has no credential here, or its
    /// environment no host. It says nothing about other keys.
    case unasked(ReceiptState.Outcome)
    /// It says nothing about the key. `retryAfter` is in seconds, where the answer has it.
    case outage(retryAfter: Int?)

    package init(_ reply: CallReply) {
        switch reply {
        case .answered(status: 200, _, let body):
            // Apple's example has no line feeds, and none were seen.
            self = Base64.decode(body.span).map { .receipt($0) } ?? .unreadable
        case .answered(status: 304, _, _): self = .early
        case .answered(status: 404, _, _): self = .gone
        case .answered(status: 401, let seconds, _), .answered(status: 429, let seconds, _),
            .answered(status: 500..., let seconds, _):
            self = .outage(retryAfter: seconds)
        case .answered(let status, _, _): self = .rejected(status: status)
        case .unsent(.noCredential): self = .unasked(.noCredential)
        case .unsent(.noHost): self = .unasked(.noHost)
        case .unsent, .failed: self = .outage(retryAfter: nil)
        }
    }
}
