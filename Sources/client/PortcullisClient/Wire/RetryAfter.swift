import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The `Retry-After` field (RFC 9110 §10.2.3), as far as the gateway writes it: whole seconds.
enum RetryAfter {
    static func seconds(in response: HTTPURLResponse) -> Double? {
        guard let text = response.value(forHTTPHeaderField: "Retry-After"),
            !text.isEmpty, text.utf8.count <= 9,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Double(text)
    }
}
