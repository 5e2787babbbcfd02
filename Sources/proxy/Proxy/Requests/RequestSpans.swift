import Encodings
import EventLoops
import HTTPWire
package import Rules

/// Which requests have spans, and who takes them. Without it no request has one.
package struct SpanRecording: Sendable {
    /// The spans of one request that has ended.
    package struct Bundle: Sendable {
        /// Objects of OTLP's JSON, with commas between them.
        package let json: [UInt8]
        package let count: Int
        /// A refused request that was not chosen to be recorded.
        package let isSpare: Bool
    }

    /// The share of requests that are recorded where no caller has decided.
    let ratio: Share
    /// Whether refused requests have a span, chosen or not.
    let keepsRefusals: Bool
    /// Called on event loops; it must not wait.
    let take: @Sendable (Bundle) -> Void

    package init(
        ratio: Share,
        keepsRefusals: Bool,
        take: @escaping @Sendable (Bundle) -> Void
    ) {
        (self.ratio, self.keepsRefusals, self.take) = (ratio, keepsRefusals, take)
    }
}

/// The trace of a request that is recorded, and when its parts began and ended. Other requests
/// have none of it.
final class RequestSpans {
    /// A part with its time: monotonic nanoseconds.
    struct Part {
        let part: RequestTimes.Part
        let since: UInt64
        let until: UInt64
    }

    /// The most parts that are kept; a request has few.
    private static let partsMax = 16

    let trace: TraceID
    /// The span of the caller; `nil` where the trace begins here.
    let parent: UInt64?
    /// The number of the request's own span, and that of the call to the origin.
    let own: UInt64
    let origin: UInt64
    private(set) var parts: [Part] = []
    /// The wall clock less the monotonic one. It is read once, so that the spans of a request fit
    /// together, and precisely, so that none seems to begin before its parent in another program.
    private let wallOffset = WallClock.nanoseconds &- MonotonicClock.nanoseconds

    init(_ trace: TraceID, parent: UInt64?, _ ids: inout RequestIDSource) {
        (self.trace, self.parent) = (trace, parent)
        (own, origin) = (ids.nextSpan(), ids.nextSpan())
    }

    func add(_ part: RequestTimes.Part, since: UInt64, until: UInt64) {
        guard parts.count < Self.partsMax else { return }
        parts.append(Part(part: part, since: since, until: until))
    }

    /// Nanoseconds since 1970 of a monotonic time.
    func wall(_ monotonic: UInt64) -> UInt64 { monotonic &+ wallOffset }

    /// What the origin gets.
    var context: SpanContext { SpanContext(trace, span: origin, isSampled: true) }
}

/// A span in OTLP's JSON (opentelemetry-proto, `Span`).
struct WrittenSpan {
    /// `Span.SpanKind`.
    enum Kind: Int {
        case `internal` = 1
        case server = 2
        case client = 3
    }

    enum Value {
        case text(String)
        /// Bytes that a client sent; more than ``WrittenSpan/textMax`` of them are cut.
        case bytes([UInt8])
        case number(Int)
        case flag(Bool)
    }

    /// The longest text of a client.
    static let textMax = 512

    let trace: TraceID
    let number: UInt64
    let parent: UInt64?
    let kind: Kind
    let name: String
    /// Nanoseconds since 1970.
    let began: UInt64
    let ended: UInt64
    var attributes: [(name: StaticString, value: Value)] = []
    var hasFailed = false

    func write(into out: inout JSONWriter) {
        out.object { out in
            out.member("traceId", trace.text)
            out.member("spanId", SpanContext.text(ofSpan: number))
            if let parent { out.member("parentSpanId", SpanContext.text(ofSpan: parent)) }
            out.member("name", name)
            out.member("kind", kind.rawValue)
            // 64-bit numbers are texts in proto3's JSON.
            out.member("startTimeUnixNano", "\(began)")
            out.member("endTimeUnixNano", "\(max(began, ended))")
            out.objects("attributes", of: attributes) { out, attribute in
                out.member("key", attribute.name.description)
                out.object("value") { attribute.value.write(into: &$0) }
            }
            // STATUS_CODE_ERROR.
            if hasFailed { out.object("status") { $0.member("code", 2) } }
        }
    }
}

extension WrittenSpan.Value {
    fileprivate func write(into out: inout JSONWriter) {
        switch self {
        case .text(let text): out.member("stringValue", text)
        case .bytes(let bytes):
            // Latin-1: bytes that are no UTF-8 must not spoil the document.
            let shown = bytes.prefix(WrittenSpan.textMax)
            let scalars = shown.map { Character(Unicode.Scalar($0)) }
            out.member("stringValue", String(scalars))
        case .number(let number): out.member("intValue", "\(number)")
        case .flag(let flag): out.member("boolValue", flag)
        }
    }
}
