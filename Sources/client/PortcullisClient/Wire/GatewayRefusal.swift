import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the gateway says in an answer of its own: in `App-Attest-Error`, and in the
/// `WWW-Authenticate: AppAttest` field of a 401.
public struct GatewayRefusal: Hashable, Sendable {
    /// What the client is to do.
    public enum Next: String, Hashable, Sendable {
        /// Sign the same request again.
        case signAgain = "sign-again"
        /// Make a new key and enrol it.
        case enrol
        /// Wait for `Retry-After`, then sign again.
        case retryLater = "retry-later"
        /// Nothing at run time: the client's code is wrong.
        case fixClient = "fix-client"
        /// Nothing: this app or device is not admitted.
        case none
    }

    /// The reason, such as `key-unknown`. Reasons are stable, and there may be more of them.
    public let reason: String
    /// What the client is to do.
    public let next: Next

    /// A refusal.
    public init(reason: String, next: Next) { (self.reason, self.next) = (reason, next) }
}

/// Why one of the gateway's endpoints gave nothing.
enum CallFailure: Error, Hashable, Sendable {
    /// The gateway refused, for a reason, and says what is next and when.
    case refused(reason: String, GatewayRefusal.Next, retryAfter: Double?)
    /// The gateway was not reached, failed, or something else answered; it may say when to retry.
    case unreachable(retryAfter: Double?)
}

/// The content of an answer that the gateway makes itself (RFC 9457).
struct ProblemDocument: Sendable {
    let reason: String
    let next: GatewayRefusal.Next?

    private struct Stored: Decodable {
        let reason: String
        let next: String?
    }

    /// The most bytes of one that are read.
    static let bytesMax = 16 << 10

    init?(_ data: Data, _ response: HTTPURLResponse) {
        let type = response.value(forHTTPHeaderField: "Content-Type") ?? ""
        guard type.lowercased().hasPrefix("application/problem+json"),
            let stored = try? JSONDecoder().decode(Stored.self, from: data)
        else { return nil }
        reason = stored.reason
        next = stored.next.flatMap(GatewayRefusal.Next.init)
    }
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
        guard let time = HTTPDate.date(text) else { return nil }
        let sent = response.value(forHTTPHeaderField: "Date").flatMap(HTTPDate.date)
        return max(0, time.timeIntervalSince(sent ?? now))
    }
}

/// A date as HTTP writes it, in each of the three forms that a recipient has to accept
/// (RFC 9110 §5.6.7).
enum HTTPDate {
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
