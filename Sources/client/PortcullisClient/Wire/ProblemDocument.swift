import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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

    /// Whether an answer says that its content is one.
    static func isOne(_ response: HTTPURLResponse) -> Bool {
        let type = response.value(forHTTPHeaderField: "Content-Type") ?? ""
        return type.lowercased().hasPrefix("application/problem+json")
    }

    init?(_ data: Data, _ response: HTTPURLResponse) {
        guard Self.isOne(response), let stored = try? JSONDecoder().decode(Stored.self, from: data)
        else { return nil }
        reason = stored.reason
        next = stored.next.flatMap(GatewayRefusal.Next.init)
    }
}
