import Encodings
import HTTPWire

/// The answer to a request; its memory is used again.
struct Answer {
    var status = 0
    /// The value of App-Attest-Challenge; empty for none.
    var challenge: [UInt8] = []
    /// Seconds of Retry-After; 0 for none.
    var retryAfter = 0
    /// The content of a refusal or of a call to an endpoint, up to the bound below.
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

    /// Where the value of `reason` is in a problem document of the gateway. It is searched, not
    /// parsed, since each refusal needs it.
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

extension Answer {
    private static let challengeName = Array("app-attest-challenge".utf8)
    private static let retryName = Array("retry-after".utf8)

    mutating func read(_ section: borrowing FieldSection, _ bytes: Span<UInt8>) {
        for index in section.fields.indices {
            let field = section.fields[index]
            if Self.equal(bytes, field.name, Self.challengeName) {
                bytes.extracting(field.value).withUnsafeBufferPointer {
                    challenge.append(contentsOf: $0)
                }
            } else if Self.equal(bytes, field.name, Self.retryName) {
                retryAfter = field.value.reduce(0) { min($0 * 10 + Int(bytes[$1] & 15), 3600) }
            }
        }
    }

    /// RFC 9110 §5.1: names are compared without case.
    private static func equal(_ bytes: Span<UInt8>, _ range: Range<Int>, _ name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        for step in 0..<name.count where bytes[range.lowerBound + step] | 0x20 != name[step] {
            // A hyphen has that bit already.
            return false
        }
        return true
    }
}

/// Memory into which all connections of an event loop read heads.
final class ResponseScratch {
    var head = ResponseHead()
    let limits = HeadLimits()
    /// The method of the request: an answer to HEAD has no content.
    let method: HTTPWire.Method

    init(method: String) { self.method = method == "HEAD" ? .head : .other }
}
