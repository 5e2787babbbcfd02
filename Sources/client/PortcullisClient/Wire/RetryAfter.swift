import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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
