import ByteCoding

/// What came back for a request; its memory is used again.
struct Answer {
    var status = 0
    /// The value of App-Attest-Challenge; empty for none.
    var challenge: [UInt8] = []
    /// Seconds of Retry-After; 0 for none.
    var retryAfter = 0
    /// The content of a refusal or of a call to an endpoint, as far as it is kept.
    var content: [UInt8] = []

    /// The most bytes that are kept.
    static let contentMax = 16 << 10

    mutating func clear() {
        status = 0
        challenge.removeAll(keepingCapacity: true)
        retryAfter = 0
        content.removeAll(keepingCapacity: true)
    }

    /// The origin has answered, or the gateway has served its own endpoint.
    var isAdmission: Bool { status >= 200 && status < 400 }

    private static let reasonStart = Array("\"reason\":\"".utf8)

    /// Where the value of `reason` is in a problem document, as the gateway writes it: looked for,
    /// not parsed, since it is done for each refusal.
    var reason: Range<Int>? {
        let start = Self.reasonStart
        guard content.count > start.count else { return nil }
        for place in 0...(content.count - start.count)
        where content[place] == start[0] && content[place...].starts(with: start) {
            let first = place + start.count
            let end = content[first...].firstIndex(of: UInt8(ascii: "\"")) ?? content.count
            return first..<end
        }
        return nil
    }

    /// The reason for people; the status alone where the answer gives no reason.
    var text: String {
        guard let reason else { return "\(status)" }
        return "\(status) \(String(decoding: content[reason], as: UTF8.self))"
    }
}
