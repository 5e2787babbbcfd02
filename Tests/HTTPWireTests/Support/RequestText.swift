import HTTPWire

extension RequestHead {
    /// Reads a head from text that ends in its blank line.
    static func reading(
        _ text: String,
        isSecure: Bool = false,
        limits: HeadLimits = HeadLimits()
    ) throws(Malformed) -> RequestHead {
        let bytes = Array(text.utf8)
        var head = RequestHead()
        try head.read(bytes.span, isSecure: isSecure, limits: limits)
        return head
    }

    /// Why a text is no head; `nil` when it is one.
    static func fault(_ text: String, limits: HeadLimits = HeadLimits()) -> Malformed.Reason? {
        do throws(Malformed) {
            _ = try reading(text, limits: limits)
            return nil
        } catch {
            return error.reason
        }
    }
}

extension ResponseHead {
    static func reading(
        _ text: String,
        to method: Method = .get,
        upgradeSent: Bool = false
    ) throws(Malformed) -> ResponseHead {
        let bytes = Array(text.utf8)
        var head = ResponseHead()
        try head.read(bytes.span, to: method, upgradeSent: upgradeSent, limits: HeadLimits())
        return head
    }

    static func fault(_ text: String, to method: Method = .get) -> Malformed.Reason? {
        do throws(Malformed) {
            _ = try reading(text, to: method)
            return nil
        } catch {
            return error.reason
        }
    }
}

/// Bytes of a range as text; spans can't be used in an expectation.
func text(_ bytes: [UInt8], _ range: Range<Int>) -> String {
    String(decoding: bytes[range], as: UTF8.self)
}
