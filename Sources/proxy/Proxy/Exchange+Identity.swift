import ClientStreams
import HTTPWire
import Lanes

// By what name the request is known: in the log, to the origin, and in a problem document.
extension Exchange {
    /// Takes the names that a trusted proxy gives. What anybody else gives is deleted, so that no
    /// client chooses a line of the log or joins the trace of another one.
    func identify(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
        if client?.peerIsTrusted == true {
            if let id = head.fields.requestID(octets) {
                record.id = id
                record.carried.insert(FieldKindSet(.requestID))
            }
            if let trace = head.fields.traceID(octets) {
                record.trace = trace
                // The gateway records no spans: the origin's parent is the one that the proxy names
                // (W3C Trace Context §2.3).
                record.carried.formUnion(.trace)
            }
        }
        guard record.trace == nil else { return }
        switch settings.traces {
        case .carry: break
        case .begin, .beginSampled:
            record.trace = record.carried.contains(.requestID) ? proxy.ids.next() : record.id
        }
    }

    /// Tells the origin the names that it does not get as they came.
    ///
    /// - keepsTrace: the origin gets the client's traceparent.
    func writeIdentity(keepsTrace: Bool) {
        if !record.carried.contains(.requestID) {
            HeadWriter.requestID(record.id, into: &originHead)
        }
        guard let trace = record.trace, !record.carried.contains(.traceparent), !keepsTrace
        else { return }
        HeadWriter.traceParent(
            trace,
            span: proxy.ids.next(),
            isSampled: settings.traces == .beginSampled,
            into: &originHead
        )
    }
}
