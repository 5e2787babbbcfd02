/// The id of a trace (W3C Trace Context §3.2.2.3): 16 bytes that are not all zero, written as 32
/// hexadecimal digits in lower case.
package struct TraceID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// `nil` for zero, which names no trace.
    package init?(_ high: UInt64, _ low: UInt64) {
        guard high | low != 0 else { return nil }
        (self.high, self.low) = (high, low)
    }

    /// The trace that is named like a request; `nil` for a name with other than 32 digits.
    package init?(_ id: RequestID) {
        guard id.count == 32, let high = HexDigits.number(id.bytes.span, 0..<16),
            let low = HexDigits.number(id.bytes.span, 16..<32)
        else { return nil }
        self.init(high, low)
    }

    /// Its digits.
    package var name: RequestID { RequestID(high, low) }

    package var text: String { name.text }

    /// The last seven bytes, which are random where the trace's flags say so. They decide about
    /// sampling by a share (OpenTelemetry, "Probability sampling", the 56 bits of randomness).
    package var randomness: UInt64 { low & 0x00FF_FFFF_FFFF_FFFF }
}

/// A span and its trace, as services tell each other in traceparent (W3C Trace Context §3.2).
package struct SpanContext: Hashable, Sendable {
    package let trace: TraceID
    /// Not zero.
    package let span: UInt64
    /// Whether the caller may have recorded it (§3.2.2.5.1).
    package let isSampled: Bool

    package init(_ trace: TraceID, span: UInt64, isSampled: Bool) {
        (self.trace, self.span, self.isSampled) = (trace, span, isSampled)
    }

    /// 16 digits.
    package static func text(ofSpan number: UInt64) -> String {
        String(RequestID(0, number).text.suffix(16))
    }
}

extension FieldSection {
    /// The span that traceparent names (W3C Trace Context §3.2.2); `nil` where there is none that
    /// is valid. Of later versions the part is read that the first one has (§3.2.4).
    package func spanContext(_ bytes: Span<UInt8>) -> SpanContext? {
        guard let value = passed(.traceparent)?.value, value.count >= TraceParentForm.count,
            value.count <= TraceParentForm.countMax
        else { return nil }
        let start = value.lowerBound
        let hyphen = UInt8(ascii: "-")
        guard let version = HexDigits.number(bytes, start..<start + 2), version != 0xFF,
            let high = HexDigits.number(bytes, start + 3..<start + 19),
            let low = HexDigits.number(bytes, start + 19..<start + 35),
            let span = HexDigits.number(bytes, start + 36..<start + 52), span != 0,
            let flags = HexDigits.number(bytes, start + 53..<start + 55),
            let trace = TraceID(high, low),
            TraceParentForm.hyphens.allSatisfy({ bytes[start + $0] == hyphen })
        else { return nil }
        if value.count > TraceParentForm.count {
            guard version != 0, bytes[start + TraceParentForm.count] == hyphen else { return nil }
        }
        return SpanContext(trace, span: span, isSampled: flags & 1 != 0)
    }
}

/// The form of traceparent: `00-` 32 digits `-` 16 digits `-` 2 digits.
private enum TraceParentForm {
    static let count = 55
    /// What a later version may append; the standard names no bound.
    static let countMax = 256
    static let hyphens = [2, 35, 52]
}

/// Hexadecimal digits; the standard allows lower case alone.
private enum HexDigits {
    /// At most 16 digits; `nil` where a byte is none.
    static func number(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64? {
        var number: UInt64 = 0
        for index in range {
            let byte = bytes[index]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            number = number << 4 | UInt64(digit)
        }
        return number
    }
}

extension HeadWriter {
    /// Appends traceparent.
    package static func traceParent(_ context: SpanContext, into out: inout [UInt8]) {
        out.append("traceparent: 00-")
        context.trace.name.append(to: &out)
        out.append(UInt8(ascii: "-"))
        let span = RequestID(0, context.span)
        for place in span.tail { out.append(span.bytes[place]) }
        out.append(context.isSampled ? "-01" : "-00")
        out.appendLineEnd()
    }
}

/// How the gateway treats a request's trace (W3C Trace Context). The raw value is the word of the
/// configuration.
package enum TraceRule: String, CaseIterable, Sendable {
    /// A trusted proxy's trace goes on; without one there is no trace. This is the default: a trace
    /// that begins here would decide for all origins which of their requests are recorded.
    case carry
    /// Without a trusted proxy's trace, one begins that does not ask to be recorded.
    case begin
    /// Without a trusted proxy's trace, one begins that asks to be recorded.
    case beginSampled = "begin-sampled"
}
