import HTTPWire
import Rules

/// The facts about a connection's request by which its answer is judged.
struct LoadRequest {
    var sending = Sending.good
    /// The number of the request on its event loop.
    var number: UInt64 = 0
    /// The device that is busy with it.
    var device: Int?
    /// The place in the rollout of the key that has signed it; `nil` where that does not matter.
    var bucket: Bucket?
    /// The number of the stage in which it is due, from 0; `nil` without stages and in the warm-up.
    var stage: Int?
    /// When the request was due, and when it was sent: nanoseconds of the monotonic clock.
    var due: UInt64 = 0
    var sentAt: UInt64 = 0
    /// How often it was sent.
    var attempts = 1
}

/// The answer to a request; its memory is used again.
struct Answer {
    var status = 0
    /// The value of App-Attest-Challenge; empty for none.
    var challenge: [UInt8] = []
    /// Seconds of Retry-After, a day at most; 0 for none.
    var retryAfter = 0
    /// The content of a refusal or of a call to an endpoint, up to the bound below.
    var content: [UInt8] = []

    /// The most bytes that are kept.
    private static let contentMax = 16 << 10
    private static let reasonStart = Array("\"reason\":\"".utf8)

    mutating func clear() {
        status = 0
        challenge.removeAll(keepingCapacity: true)
        retryAfter = 0
        content.removeAll(keepingCapacity: true)
    }

    mutating func keep(_ bytes: Span<UInt8>) {
        guard content.count + bytes.count <= Self.contentMax else { return }
        bytes.withUnsafeBufferPointer { content.append(contentsOf: $0) }
    }

    /// The origin has answered, or the gateway has served its own endpoint.
    var isAdmission: Bool { status >= 200 && status < 400 }

    /// The most bytes of a reason.
    private static let reasonMax = 64

    /// The value of `reason` in a problem document of the gateway. It is searched, not parsed,
    /// since each refusal needs it. It ends before a byte that no reason has: another server's
    /// bytes could give orders to the terminal that shows them.
    var reason: ArraySlice<UInt8>? {
        let start = Self.reasonStart
        guard content.count > start.count else { return nil }
        for place in 0...(content.count - start.count)
        where content[place] == start[0] && content[place...].starts(with: start) {
            return content[(place + start.count)...].prefix(Self.reasonMax)
                .prefix { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "\"") }
        }
        return nil
    }

    /// The reason for people; the status alone where the answer gives no reason.
    var text: String {
        reason.map { "\(status) \(String(decoding: $0, as: UTF8.self))" } ?? "\(status)"
    }

    mutating func read(_ section: borrowing FieldSection, _ bytes: Span<UInt8>) {
        if let value = section.value(of: "app-attest-challenge", bytes) {
            bytes.extracting(value).withUnsafeBufferPointer { challenge.append(contentsOf: $0) }
        }
        if let value = section.value(of: "retry-after", bytes) {
            retryAfter = value.reduce(0) { min($0 * 10 + Int(bytes[$1] & 15), 86_400) }
        }
    }
}
