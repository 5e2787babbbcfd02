import HTTPWire

/// The name of a cookie, in all spellings that servers take for it.
///
/// Servers differ on which cookies a field has. As their sources read it:
///
/// * Django, Flask, Express, Go: what stands between `;`. White space around the name is dropped,
///   by the first two all of Unicode's.
/// * `SimpleCookie`, aiohttp: white space ends a value, too, and may stand before `=`.
/// * PHP: spaces before the name are dropped; `.`, space and `[` in it become `_`; `[a]` after it
///   makes a list. Before 7.4.11 names were percent-decoded, with `+` for a space.
/// * Rack before 2.2.3: names are percent-decoded. Older versions also split at `,`.
/// * ASP.NET Core: `,` also separates. After a fault it reads on from the next byte, so a name may
///   follow any byte that no token has. Names have no case; 3.1 decodes them.
///
/// Some proxies join two fields by a comma. So a cookie of this name may stand wherever one of
/// these could read it, and is taken only where all of them read the same.
package struct CookieName {
    /// What a field has.
    package enum Finding: Equatable {
        case nothing
        /// The place of the value that all servers read.
        case value(Range<Int>)
        /// Servers differ on the value.
        case unclear
    }

    /// 1…128 visible characters.
    let name: [UInt8]

    package init(_ name: [UInt8]) { self.name = name }

    /// Finds the cookie in the value of a Cookie field.
    package func finding(in bytes: Span<UInt8>, _ field: Range<Int>) -> Finding {
        let text = bytes.extracting(field)
        var found = Finding.nothing
        for end in 0...text.count {
            guard let ending = Ending(text, at: end),
                let isPlain = occurrence(in: text, before: end, ending)
            else { continue }
            guard found == .nothing, isPlain else { return .unclear }
            let value = text.cookieValue(from: end + 1)
            let start = field.lowerBound
            found = .value(start + value.lowerBound..<start + value.upperBound)
        }
        return found
    }

    /// What follows a name.
    private enum Ending {
        /// `=`
        case equals
        /// What PHP takes for the end of a name: `[`, or a zero byte that is percent-encoded.
        case mark
        /// The pair ends, and has no value.
        case pair

        init?(_ text: Span<UInt8>, at place: Int) {
            guard place < text.count else {
                self = .pair
                return
            }
            switch text[place] {
            case UInt8(ascii: "="): self = .equals
            case UInt8(ascii: "["): self = .mark
            case UInt8(ascii: ";"), UInt8(ascii: ","): self = .pair
            case UInt8(ascii: "%"):
                let isZero =
                    text.count - place > 2 && text[place + 1] == UInt8(ascii: "0")
                    && text[place + 2] == UInt8(ascii: "0")
                guard isZero else { return nil }
                self = .mark
            default: return nil
            }
        }
    }

    /// Whether a name stands before this place: `nil` for no; `true` where all servers read it.
    private func occurrence(in text: Span<UInt8>, before end: Int, _ ending: Ending) -> Bool? {
        // PHP makes `_` of a blank, others drop it.
        let trimmed = text.droppingBlanks(before: end)
        for stop in trimmed == end ? [end] : [end, trimmed] {
            for decodes in [false, true] {
                guard let start = text.start(of: name, before: stop, decodes: decodes) else {
                    continue
                }
                switch ending {
                case .pair: if text.beginsPair(at: start) { return false }
                case .mark: if text.isParted(at: start) { return false }
                case .equals:
                    guard text.isParted(at: start) else { continue }
                    return stop == end && text.isPlain(start..<end, name)
                }
            }
        }
        return nil
    }
}

// A field is read backwards from each mark that ends a name: so each byte is read a few times.
extension Span<UInt8> {
    /// The byte that ends at this place, and its beginning: three characters for one that is
    /// percent-encoded.
    private func decoded(before end: Int) -> (byte: UInt8, start: Int) {
        let raw = (byte: self[end - 1], start: end - 1)
        guard end >= 3, self[end - 3] == UInt8(ascii: "%"), let high = self[end - 2].hexDigit,
            let low = self[end - 1].hexDigit
        else { return raw }
        return (high << 4 | low, end - 3)
    }

    /// The place from which on only bytes stand that some server drops.
    fileprivate func droppingBlanks(before end: Int) -> Int {
        var place = end
        while place > 0 {
            let (byte, start) = decoded(before: place)
            guard byte.isDropped else { break }
            place = start
        }
        return place
    }

    /// The beginning of the name that ends at this place, in any spelling; `nil` for none.
    fileprivate func start(of name: [UInt8], before end: Int, decodes: Bool) -> Int? {
        var place = end
        for expected in name.reversed() {
            guard place > 0 else { return nil }
            let (byte, start) = decodes ? decoded(before: place) : (self[place - 1], place - 1)
            guard byte.folded == expected.folded else { return nil }
            place = start
        }
        return place
    }

    /// Whether a name may begin here: some server ends what is before it.
    fileprivate func isParted(at start: Int) -> Bool {
        guard start > 0 else { return true }
        let before = self[start - 1]
        return !before.isTokenByte || before == UInt8(ascii: "+")
            || !decoded(before: start).byte.isTokenByte
    }

    /// Whether a pair begins here.
    fileprivate func beginsPair(at start: Int) -> Bool {
        let place = droppingBlanks(before: start)
        return place == 0 || self[place - 1] == UInt8(ascii: ";")
            || self[place - 1] == UInt8(ascii: ",")
    }

    /// Whether all servers read this as the name, and as the first of its pair.
    fileprivate func isPlain(_ range: Range<Int>, _ name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        for index in name.indices where self[range.lowerBound + index] != name[index] {
            return false
        }
        var place = range.lowerBound
        while place > 0, self[place - 1].isBlank { place -= 1 }
        return place == 0 || self[place - 1] == UInt8(ascii: ";")
    }

    /// The value that begins here, up to the next semicolon, without the blanks at its end.
    fileprivate func cookieValue(from start: Int) -> Range<Int> {
        var end = start
        while end < count, self[end] != UInt8(ascii: ";") { end += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return start..<end
    }
}

extension UInt8 {
    /// Space and tab.
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// tchar (RFC 9110 §5.6.2), but for the mark that Envoy puts in its question for each byte that
    /// is not UTF-8.
    fileprivate var isTokenByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }

    /// Whether some server drops it around a name: blanks, controls, quotes, what may be a part of
    /// Unicode's white space, and Envoy's mark for that.
    fileprivate var isDropped: Bool { self <= UInt8(ascii: "\"") || self >= 0x7F }

    /// In lower case, and as PHP has it in names.
    fileprivate var folded: UInt8 {
        switch self {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): self | 0x20
        case UInt8(ascii: "."), UInt8(ascii: " "), UInt8(ascii: "["), UInt8(ascii: "+"):
            UInt8(ascii: "_")
        default: self
        }
    }

    fileprivate var hexDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
