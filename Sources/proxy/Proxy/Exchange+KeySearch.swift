import ClientStreams
import HTTPWire
import RequestFlow

/// Whether the store was asked for a key that this gateway does not know. It is asked once for a
/// request.
enum KeySearch {
    case notBegun
    /// The head is judged anew when the store has answered. Its bytes are kept here, since the
    /// client's buffer goes on.
    case waiting(head: [UInt8])
    /// The store was asked; content that is held is judged anew when it has answered.
    case over
}

extension Exchange {
    /// Whether the store may be asked for the key.
    var mayAwaitKey: Bool { if case .notBegun = keySearch { true } else { false } }

    /// Judges a head that was kept.
    func judgeKeptHead() -> RequestFlow.Action {
        guard case .waiting(let octets) = keySearch, let client else {
            preconditionFailure("Exchange: no head was kept")
        }
        keySearch = .over
        let heads = proxy.askedHeads
        do throws(Malformed) {
            let limits = settings.clientLimits.head
            try heads.request.read(octets.span, isSecure: client.isSecure, limits: limits)
        } catch {
            preconditionFailure("Exchange: a head that was read can't be read again")
        }
        return judgeHead(heads.request, octets.span)
    }
}
