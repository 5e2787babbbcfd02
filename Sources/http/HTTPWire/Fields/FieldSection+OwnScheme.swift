/// The gateway's own authentication scheme in an origin's WWW-Authenticate.
///
/// Clients act on a challenge of the scheme `AppAttest`, so only the gateway may send one.
extension FieldSection {
    /// Whether a line names the scheme. Any word counts, even one in a quoted string;
    /// ``HeadWriter`` then reads more closely.
    func namesOwnScheme(_ bytes: Span<UInt8>) -> Bool {
        guard kinds.contains(.wwwAuthenticate) else { return false }
        for field in fields where field.kind == .wwwAuthenticate {
            var index = field.value.lowerBound
            let end = field.value.upperBound
            while index < end {
                let start = index
                while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
                if Self.isOwnScheme(bytes, start..<index) { return true }
                index += 1
            }
        }
        return false
    }

    /// Appends the lines of WWW-Authenticate without the challenges of the scheme. A line that
    /// can't be read is left out.
    ///
    /// RFC 9110 §11.6.1: WWW-Authenticate is a list of challenges, and a challenge's parameters are
    /// a list too. So an element is either a new challenge or a parameter of the previous one,
    /// which may be in the previous line.
    func appendForeignChallenges(_ bytes: Span<UInt8>, to out: inout [UInt8]) {
        var isOwn = false
        for field in fields where field.kind == .wwwAuthenticate {
            let start = out.count
            var separator: StaticString = "WWW-Authenticate: "
            var list = ListElements(field.value)
            while let element = list.next(bytes) {
                // A scheme is never followed by "=": a space and a parameter follow it.
                if !element.hasValue { isOwn = false }
                if Self.hasOwnScheme(bytes, element.range) { isOwn = true }
                guard !isOwn else { continue }
                out.append(separator)
                out.append(bytes, element.range)
                separator = ", "
            }
            if list.isMalformed {
                out.removeLast(out.count - start)
                // It is unknown which challenge the next line's parameters belong to.
                isOwn = true
            } else if out.count > start {
                out.appendLineEnd()
            }
        }
    }

    /// Whether the scheme is in an element as a word that is no parameter's value. Other words may
    /// precede it, as in `Basic realm="x" AppAttest error="y"`: some readers take each word for a
    /// new scheme.
    private static func hasOwnScheme(_ bytes: Span<UInt8>, _ element: Range<Int>) -> Bool {
        var index = element.lowerBound
        var isValue = false
        while index < element.upperBound {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                let quoted = index..<element.upperBound
                index = ListElements.endOfQuoted(bytes, quoted) ?? element.upperBound
                isValue = false
                continue
            }
            let start = index
            while index < element.upperBound, ByteSet.token.contains(bytes[index]) { index += 1 }
            guard index > start else {
                if !ASCIIByte.isBlank(byte) { isValue = byte == UInt8(ascii: "=") }
                index += 1
                continue
            }
            if !isValue, isOwnScheme(bytes, start..<index) { return true }
            isValue = false
        }
        return false
    }

    private static func isOwnScheme(_ bytes: Span<UInt8>, _ word: Range<Int>) -> Bool {
        ByteScan.equal(bytes, word, "appattest")
    }
}
