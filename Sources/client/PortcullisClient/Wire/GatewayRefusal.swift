import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the gateway says in an answer of its own: in `App-Attest-Error`, and in the
/// `WWW-Authenticate: AppAttest` field of a 401.
public struct GatewayRefusal: Hashable, Sendable {
    /// What the client is to do. A step of a newer gateway that is not known here is ``none``.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive(warn)
    #endif
    public enum Next: String, Hashable, Sendable {
        /// Sign the same request again.
        case signAgain = "sign-again"
        /// Make a new key and enrol it.
        case enrol
        /// Wait for `Retry-After`, then sign again.
        case retryLater = "retry-later"
        /// Nothing at run time: the client's code is wrong.
        case fixClient = "fix-client"
        /// Get a new token of one of ``GatewayRefusal/tokens`` from its issuer, such as App Check,
        /// and send the request with it. The app does that: the library has no such tokens.
        case getToken = "get-token"
        /// Nothing: this app or device is not admitted.
        case none
    }

    /// The reason, such as `key-unknown`. Reasons are stable, and there may be more of them.
    public let reason: String
    /// What the client is to do.
    public let next: Next
    /// The names of the tokens of other issuers that the rule takes or asks for, as the gateway's
    /// configuration has them under `proofs`; empty where the answer names none.
    public let tokens: [String]

    /// A refusal.
    public init(reason: String, next: Next, tokens: [String] = []) {
        (self.reason, self.next, self.tokens) = (reason, next, tokens)
    }
}

/// Why one of the gateway's endpoints gave nothing.
enum EndpointFailure: Error, Hashable, Sendable {
    /// The gateway refused, for a reason, and says what is next and when.
    case refused(reason: String, GatewayRefusal.Next, retryAfter: Double?)
    /// The gateway was not reached, failed, or something else answered; it may say when to retry.
    case unreachable(retryAfter: Double?)
}

/// The `Retry-After` field: whole seconds, or a date (RFC 9110 §10.2.3). The gateway writes
/// seconds; what stands before it may write either.
enum RetryAfter {
    /// How long to wait; `nil` where the answer does not say. A date counts from the answer's own
    /// `Date`, so that the clock of the device does not matter.
    static func seconds(in response: HTTPURLResponse, now: Date) -> Double? {
        guard let text = response.value(forHTTPHeaderField: "Retry-After"), !text.isEmpty else {
            return nil
        }
        if text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            return text.utf8.count <= 9 ? Double(text) : nil
        }
        guard let time = FieldDate.date(text) else { return nil }
        let sent = response.value(forHTTPHeaderField: "Date").flatMap(FieldDate.date)
        return max(0, time.timeIntervalSince(sent ?? now))
    }
}

/// A date as HTTP writes it, in each of the three forms that a recipient has to accept
/// (RFC 9110 §5.6.7).
enum FieldDate {
    private static let formats = [
        "EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy",
    ]
    /// The longest is that of RFC 850: `Wednesday, 09-Nov-94 08:49:37 GMT`.
    private static let bytesMax = 40

    static func date(_ text: String) -> Date? {
        guard text.utf8.count <= bytesMax else { return nil }
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        for format in formats {
            formatter.dateFormat = format
            if let date = formatter.date(from: text) { return date }
        }
        return nil
    }
}
